"""Saving and loading: models, weights, configs. Nothing that is loaded can run code.

What makes models of files is loaded when it is asked for: reading the files alone needs no layers.
"""

from typing import TYPE_CHECKING

from laminar.engine.lazy import lazy_names

if TYPE_CHECKING:
    from laminar.serialization import CustomObjectScope as CustomObjectScope
    from laminar.serialization import custom_object_scope as custom_object_scope
    from laminar.serialization import deserialize_keras_object as deserialize_keras_object
    from laminar.serialization import get_custom_objects as get_custom_objects
    from laminar.serialization import get_registered_name as get_registered_name
    from laminar.serialization import get_registered_object as get_registered_object
    from laminar.serialization import register_keras_serializable as register_keras_serializable
    from laminar.serialization import serialize_keras_object as serialize_keras_object

    from .file_editor import KerasFileEditor as KerasFileEditor
    from .limits import Limits as Limits
    from .model import load_model as load_model
    from .model import load_weights as load_weights
    from .model import save_model as save_model
    from .model import save_weights as save_weights
    from .report import LoadReport as LoadReport

_OF_SERIALIZATION = (
    "CustomObjectScope",
    "custom_object_scope",
    "deserialize_keras_object",
    "get_custom_objects",
    "get_registered_name",
    "get_registered_object",
    "register_keras_serializable",
    "serialize_keras_object",
)
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(_OF_SERIALIZATION, "laminar.serialization"),
        **dict.fromkeys(("load_model", "load_weights", "save_model", "save_weights"), ".model"),
        "KerasFileEditor": ".file_editor",
        "Limits": ".limits",
        "LoadReport": ".report",
    },
)
