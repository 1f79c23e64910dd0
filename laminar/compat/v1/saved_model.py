"""`tf.saved_model`: graphs with their variables as folders, for this program and for servers."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

from .face import Line, face

ASSETS_DIRECTORY = "assets"
ASSETS_KEY = "saved_model_assets"
LEGACY_INIT_OP_KEY = "legacy_init_op"
MAIN_OP_KEY = "saved_model_main_op"
SAVED_MODEL_FILENAME_PB = "saved_model.pb"
SAVED_MODEL_FILENAME_PBTXT = "saved_model.pbtxt"
SAVED_MODEL_SCHEMA_VERSION = 1
VARIABLES_DIRECTORY = "variables"
VARIABLES_FILENAME = "variables"

DEFAULT_SERVING_SIGNATURE_DEF_KEY = "serving_default"
CLASSIFY_INPUTS = "inputs"
CLASSIFY_METHOD_NAME = "tensorflow/serving/classify"
CLASSIFY_OUTPUT_CLASSES = "classes"
CLASSIFY_OUTPUT_SCORES = "scores"
PREDICT_INPUTS = "inputs"
PREDICT_METHOD_NAME = "tensorflow/serving/predict"
PREDICT_OUTPUTS = "outputs"
REGRESS_INPUTS = "inputs"
REGRESS_METHOD_NAME = "tensorflow/serving/regress"
REGRESS_OUTPUTS = "outputs"

SERVING, TRAINING, GPU, TPU = "serve", "train", "gpu", "tpu"

_FUNCTIONS = (
    "build_signature_def",
    "build_tensor_info",
    "classification_signature_def",
    "contains_saved_model",
    "get_tensor_from_tensor_info",
    "is_valid_signature",
    "load",
    "main_op_with_restore",
    "predict_signature_def",
    "regression_signature_def",
    "simple_save",
)
NAMES: dict[str, Line] = {
    **{name: f".saved_models:{name}" for name in _FUNCTIONS},
    "Builder": ".saved_models:SavedModelBuilder",
    "SavedModelBuilder": ".saved_models:SavedModelBuilder",
    "maybe_saved_model_directory": ".saved_models:contains_saved_model",
}

# Modules that list a part of these names.
_PARTS = frozenset(
    {
        "builder",
        "constants",
        "loader",
        "signature_constants",
        "signature_def_utils",
        "tag_constants",
        "utils",
    }
)

_get, _names = face(__name__, NAMES)


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return sys.modules[__name__]
    if name == "main_op":
        from .saved_models import main_op, main_op_with_restore  # with all of the engine

        return SimpleNamespace(main_op=main_op, main_op_with_restore=main_op_with_restore)
    return _get(name)


def __dir__() -> list[str]:
    constants = {name for name in globals() if name.isupper() and name[0] != "_"}
    return sorted({*_names(), *_PARTS, "main_op", *(constants - {"NAMES"})})
