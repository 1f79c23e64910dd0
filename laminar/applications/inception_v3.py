"""Inception-v3: at each stage convolutions of several sizes side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar import layers
from laminar.models import Model

from ..typing import DataFormat, Padding
from . import imagenet_utils
from .common import Options, Published, architecture
from .imagenet_utils import decode_predictions as decode_predictions

_STEM = "inception_v3_weights_tf_dim_ordering_tf_kernels"
_PUBLISHED = Published(
    "tensorflow/keras-applications/inception_v3/",
    (f"{_STEM}.h5", "9a0d58056eeedaa3f26cb7ebd46da564"),
    (f"{_STEM}_notop.h5", "bcbd6486424b2319ff4ef7d526e38f63"),
)

# A convolution: channels, height and width of the kernel.
_Kernel = tuple[int, int, int]


def _inception(options: Options) -> Model:
    image = options.begin(299, 75)
    x = _convolution(image, (32, 3, 3), 2, "valid")
    x = _convolution(x, (32, 3, 3), 1, "valid")
    x = _convolution(x, (64, 3, 3))
    x = layers.MaxPooling2D(3, strides=2)(x)
    x = _convolution(x, (80, 1, 1), 1, "valid")
    x = _convolution(x, (192, 3, 3), 1, "valid")
    x = layers.MaxPooling2D(3, strides=2)(x)
    for i, pooled in enumerate((32, 64, 64)):
        x = _small_kernels(x, pooled, f"mixed{i}")
    x = _halved(x, [(384, 3, 3)], [(64, 1, 1), (96, 3, 3), (96, 3, 3)], "mixed3")
    for i, narrow in enumerate((128, 160, 160, 192), 4):
        x = _long_kernels(x, narrow, f"mixed{i}")
    last = [(192, 1, 1), (192, 1, 7), (192, 7, 1), (192, 3, 3)]
    x = _halved(x, [(192, 1, 1), (320, 3, 3)], last, "mixed8")
    for i in range(2):
        x = _split_kernels(x, i)
    return options.end(x, image, pool_names=(None, None))


def _convolution(x: Any, kernel: _Kernel, stride: int = 1, padding: Padding = "same") -> Any:
    filters, *size = kernel
    x = layers.Conv2D(filters, size, strides=stride, padding=padding, use_bias=False)(x)
    x = layers.BatchNormalization(scale=False)(x)
    return layers.Activation("relu")(x)


def _chain(x: Any, kernels: Sequence[_Kernel]) -> Any:
    for kernel in kernels:
        x = _convolution(x, kernel)
    return x


def _pooled(x: Any, filters: int) -> Any:
    pool = layers.AveragePooling2D(3, strides=1, padding="same")(x)
    return _convolution(pool, (filters, 1, 1))


def _small_kernels(x: Any, pooled: int, name: str) -> Any:
    """The paper's figure 5: one 5x5 kernel, and two of 3x3 after each other."""
    branches = [
        _chain(x, [(64, 1, 1)]),
        _chain(x, [(48, 1, 1), (64, 5, 5)]),
        _chain(x, [(64, 1, 1), (96, 3, 3), (96, 3, 3)]),
        _pooled(x, pooled),
    ]
    return layers.Concatenate(name=name)(branches)


def _long_kernels(x: Any, narrow: int, name: str) -> Any:
    """Figure 6: 7x7 kernels as 1x7 and 7x1."""
    double = [(narrow, 1, 1), (narrow, 7, 1), (narrow, 1, 7), (narrow, 7, 1), (192, 1, 7)]
    branches = [
        _chain(x, [(192, 1, 1)]),
        _chain(x, [(narrow, 1, 1), (narrow, 1, 7), (192, 7, 1)]),
        _chain(x, double),
        _pooled(x, 192),
    ]
    return layers.Concatenate(name=name)(branches)


def _split_kernels(x: Any, i: int) -> Any:
    """Figure 7: 1x3 and 3x1 kernels side by side."""
    first = _chain(x, [(320, 1, 1)])
    single = _side_by_side(_chain(x, [(384, 1, 1)]), f"mixed9_{i}")
    double = _side_by_side(_chain(x, [(448, 1, 1), (384, 3, 3)]), None)
    branches = [first, single, double, _pooled(x, 192)]
    return layers.Concatenate(name=f"mixed{9 + i}")(branches)


def _side_by_side(x: Any, name: str | None) -> Any:
    parts = [_convolution(x, (384, 1, 3)), _convolution(x, (384, 3, 1))]
    return layers.Concatenate(name=name)(parts)


def _halved(x: Any, one: Sequence[_Kernel], other: Sequence[_Kernel], name: str) -> Any:
    """Figure 10: two chains whose last step halves the image, and a pooling that does."""
    branches = []
    for *first, last in (one, other):
        branches.append(_convolution(_chain(x, first), last, 2, "valid"))
    branches.append(layers.MaxPooling2D(3, strides=2)(x))
    return layers.Concatenate(name=name)(branches)


InceptionV3 = architecture(
    "InceptionV3",
    _PUBLISHED,
    _inception,
    "Inception-v3.",
    'Szegedy et al., "Rethinking the Inception architecture for computer vision", 2015, '
    "arXiv:1512.00567.",
    name="inception_v3",
)


def preprocess_input(x: Any, data_format: DataFormat | None = None) -> Any:
    """Pixels from 0 to 255 to the range from -1 to 1; see `imagenet_utils.preprocess_input`."""
    return imagenet_utils.preprocess_input(x, data_format, "tf")
