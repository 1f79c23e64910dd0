"""`tf.saved_model`: graphs with their variables as folders, for this program and for servers."""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace
from typing import Any

from . import saved_model_words
from .face import Line, face

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
    **{name: f".saved_model_words:{name}" for name in vars(saved_model_words) if name.isupper()},
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
        found = importlib.import_module(".saved_models", __package__)  # with all of the engine
        return SimpleNamespace(
            main_op=found.main_op, main_op_with_restore=found.main_op_with_restore
        )
    return _get(name)


def __dir__() -> list[str]:
    return sorted({*_names(), *_PARTS, "main_op"})
