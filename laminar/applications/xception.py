"""Xception: depthwise separable convolutions with residual connections."""

from __future__ import annotations

from typing import Any

from laminar import layers
from laminar.models import Model

from ..typing import DataFormat
from . import imagenet_utils
from .common import Options, Published, architecture
from .imagenet_utils import decode_predictions as decode_predictions

_PUBLISHED = Published(
    "tensorflow/keras-applications/xception/",
    ("xception_weights_tf_dim_ordering_tf_kernels.h5", "0a58e3b7378bc2990ea3b43d5981f1f6"),
    ("xception_weights_tf_dim_ordering_tf_kernels_notop.h5", "b0042744bf5b25fce3cb969f33bebb97"),
)
_MIDDLE = range(5, 13)  # the blocks that keep size and channels


def _xception(options: Options) -> Model:
    image = options.begin(299, 71)
    x = _convolution(image, 32, 2, "block1_conv1")
    x = _convolution(x, 64, 1, "block1_conv2")
    for block, filters in ((2, 128), (3, 256), (4, 728)):
        x = _halving(x, (filters, filters), block)
    for block in _MIDDLE:
        y = x
        for i in (1, 2, 3):
            y = layers.Activation("relu", name=f"block{block}_sepconv{i}_act")(y)
            y = _separable(y, 728, f"block{block}_sepconv{i}")
        x = layers.Add()([y, x])
    x = _halving(x, (728, 1024), 13)
    for i, filters in ((1, 1536), (2, 2048)):
        x = _separable(x, filters, f"block14_sepconv{i}")
        x = layers.Activation("relu", name=f"block14_sepconv{i}_act")(x)
    return options.end(x, image, pool_names=(None, None))


def _convolution(x: Any, filters: int, stride: int, name: str) -> Any:
    x = layers.Conv2D(filters, 3, strides=stride, use_bias=False, name=name)(x)
    x = layers.BatchNormalization(name=f"{name}_bn")(x)
    return layers.Activation("relu", name=f"{name}_act")(x)


def _separable(x: Any, filters: int, name: str) -> Any:
    x = layers.SeparableConv2D(filters, 3, padding="same", use_bias=False, name=name)(x)
    return layers.BatchNormalization(name=f"{name}_bn")(x)


def _halving(x: Any, filters: tuple[int, int], block: int) -> Any:
    """A block that halves the image, added to a projection of what goes in."""
    shortcut = layers.Conv2D(filters[1], 1, strides=2, padding="same", use_bias=False)(x)
    shortcut = layers.BatchNormalization()(shortcut)
    if block > 2:  # before the second block there is an activation already
        x = layers.Activation("relu", name=f"block{block}_sepconv1_act")(x)
    x = _separable(x, filters[0], f"block{block}_sepconv1")
    x = layers.Activation("relu", name=f"block{block}_sepconv2_act")(x)
    x = _separable(x, filters[1], f"block{block}_sepconv2")
    x = layers.MaxPooling2D(3, strides=2, padding="same", name=f"block{block}_pool")(x)
    return layers.Add()([x, shortcut])


Xception = architecture(
    "Xception",
    _PUBLISHED,
    _xception,
    "Xception.",
    'Chollet, "Xception", 2017, arXiv:1610.02357.',
)


def preprocess_input(x: Any, data_format: DataFormat | None = None) -> Any:
    """Pixels from 0 to 255 to the range from -1 to 1; see `imagenet_utils.preprocess_input`."""
    return imagenet_utils.preprocess_input(x, data_format, "tf")
