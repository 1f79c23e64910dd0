from laminar.registration import CustomObjectScope as CustomObjectScope
from laminar.registration import custom_object_scope as custom_object_scope
from laminar.registration import get_custom_objects as get_custom_objects
from laminar.registration import get_registered_name as get_registered_name
from laminar.registration import get_registered_object as get_registered_object
from laminar.registration import register_keras_serializable as register_keras_serializable
from laminar.serialization import deserialize_keras_object as deserialize_keras_object
from laminar.serialization import serialize_keras_object as serialize_keras_object

from .file_editor import KerasFileEditor as KerasFileEditor
from .limits import Limits as Limits
from .model import load_model as load_model
from .model import load_weights as load_weights
from .model import save_model as save_model
from .model import save_weights as save_weights
from .report import LoadReport as LoadReport
