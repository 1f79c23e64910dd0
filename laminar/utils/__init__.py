"""Tools around models and data."""

from laminar.config import disable_interactive_logging as disable_interactive_logging
from laminar.config import enable_interactive_logging as enable_interactive_logging
from laminar.config import is_interactive_logging_enabled as is_interactive_logging_enabled
from laminar.layers.symbolic import is_keras_tensor as is_keras_tensor
from laminar.models.data import pack_x_y_sample_weight as pack_x_y_sample_weight
from laminar.models.data import unpack_x_y_sample_weight as unpack_x_y_sample_weight
from laminar.random import set_random_seed as set_random_seed
from laminar.serialization import CustomObjectScope as CustomObjectScope
from laminar.serialization import custom_object_scope as custom_object_scope
from laminar.serialization import deserialize_keras_object as deserialize_keras_object
from laminar.serialization import get_custom_objects as get_custom_objects
from laminar.serialization import get_registered_name as get_registered_name
from laminar.serialization import get_registered_object as get_registered_object
from laminar.serialization import register_keras_serializable as register_keras_serializable
from laminar.serialization import serialize_keras_object as serialize_keras_object

from .files import get_file as get_file
from .numerical import normalize as normalize
from .numerical import to_categorical as to_categorical
from .progbar import Progbar as Progbar
from .sequences import pad_sequences as pad_sequences
from .session import clear_session as clear_session
from .splits import split_dataset as split_dataset
