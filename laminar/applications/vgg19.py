"""VGG with 19 layers."""

from __future__ import annotations

from typing import Any

from laminar.models import Model

from ..typing import DataFormat
from . import imagenet_utils
from .common import Options, Published, architecture
from .imagenet_utils import decode_predictions as decode_predictions
from .vgg16 import vgg

_PUBLISHED = Published(
    "tensorflow/keras-applications/vgg19/",
    ("vgg19_weights_tf_dim_ordering_tf_kernels.h5", "cbe5617147190e668d6c5d5026f83318"),
    ("vgg19_weights_tf_dim_ordering_tf_kernels_notop.h5", "253f8cb515780f3b799900260a226db6"),
)


def _vgg19(options: Options) -> Model:
    return vgg(options, (2, 2, 4, 4, 4))


VGG19 = architecture(
    "VGG19",
    _PUBLISHED,
    _vgg19,
    "VGG with 19 layers.",
    'Simonyan and Zisserman, "Very deep convolutional networks", 2015, arXiv:1409.1556.',
)


def preprocess_input(x: Any, data_format: DataFormat | None = None) -> Any:
    """BGR, less the mean of each colour; see `imagenet_utils.preprocess_input`."""
    return imagenet_utils.preprocess_input(x, data_format, "caffe")
