"""Older names of tools that make data sets; see `laminar.utils`."""

from laminar.utils.image_dataset import (
    image_dataset_from_directory as image_dataset_from_directory,
)
from laminar.utils.text_dataset import text_dataset_from_directory as text_dataset_from_directory
from laminar.utils.timeseries import (
    timeseries_dataset_from_array as timeseries_dataset_from_array,
)

from . import image as image
from . import sequence as sequence
