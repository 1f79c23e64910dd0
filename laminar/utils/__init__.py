"""Tools around models and data."""

from laminar.config import disable_interactive_logging as disable_interactive_logging
from laminar.config import enable_interactive_logging as enable_interactive_logging
from laminar.config import is_interactive_logging_enabled as is_interactive_logging_enabled
from laminar.datasets.py_dataset import PyDataset as PyDataset
from laminar.datasets.unpack import pack_x_y_sample_weight as pack_x_y_sample_weight
from laminar.datasets.unpack import unpack_x_y_sample_weight as unpack_x_y_sample_weight
from laminar.layers.symbolic import is_keras_tensor as is_keras_tensor
from laminar.random import set_random_seed as set_random_seed
from laminar.registration import CustomObjectScope as CustomObjectScope
from laminar.registration import custom_object_scope as custom_object_scope
from laminar.registration import get_custom_objects as get_custom_objects
from laminar.registration import get_registered_name as get_registered_name
from laminar.registration import get_registered_object as get_registered_object
from laminar.registration import register_keras_serializable as register_keras_serializable
from laminar.serialization import deserialize_keras_object as deserialize_keras_object
from laminar.serialization import serialize_keras_object as serialize_keras_object
from laminar.settings import standardize_dtype as standardize_dtype

from . import bounding_boxes as bounding_boxes
from . import legacy as legacy
from .audio_dataset import audio_dataset_from_directory as audio_dataset_from_directory
from .config import Config as Config
from .drawing import Drawing as Drawing
from .drawing import model_to_dot as model_to_dot
from .drawing import plot_model as plot_model
from .feature_space import FeatureSpace as FeatureSpace
from .files import get_file as get_file
from .graph_view import view_graph as view_graph
from .image_dataset import image_dataset_from_directory as image_dataset_from_directory
from .images import array_to_img as array_to_img
from .images import img_to_array as img_to_array
from .images import load_img as load_img
from .images import save_img as save_img
from .numerical import normalize as normalize
from .numerical import to_categorical as to_categorical
from .progbar import Progbar as Progbar
from .sequences import pad_sequences as pad_sequences
from .session import clear_session as clear_session
from .source_inputs import get_source_inputs as get_source_inputs
from .splits import split_dataset as split_dataset
from .text_dataset import text_dataset_from_directory as text_dataset_from_directory
from .timeseries import timeseries_dataset_from_array as timeseries_dataset_from_array

Sequence = PyDataset  # its older name
