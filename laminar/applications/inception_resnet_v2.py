"""Inception-ResNet-v2: convolutions of several sizes side by side, added to what went in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar import layers
from laminar.models import Model

from ..typing import DataFormat, Padding
from . import imagenet_utils
from .common import Options, Published, architecture
from .imagenet_utils import decode_predictions as decode_predictions
from .scaled_sum import CustomScaleLayer

_STEM = "inception_resnet_v2_weights_tf_dim_ordering_tf_kernels"
_PUBLISHED = Published(
    "tensorflow/keras-applications/inception_resnet_v2/",
    (f"{_STEM}.h5", "e693bd0210a403b3192acc6073ad2e96"),
    (f"{_STEM}_notop.h5", "d19885ff4a710c122648d3b5c3b684e4"),
)

# A convolution: channels, height and width of the kernel.
_Kernel = tuple[int, int, int]
# The branches of the blocks of each kind: the paper's figures 16, 17 and 19.
_BRANCHES: dict[str, list[list[_Kernel]]] = {
    "block35": [
        [(32, 1, 1)],
        [(32, 1, 1), (32, 3, 3)],
        [(32, 1, 1), (48, 3, 3), (64, 3, 3)],
    ],
    "block17": [[(192, 1, 1)], [(128, 1, 1), (160, 1, 7), (192, 7, 1)]],
    "block8": [[(192, 1, 1)], [(192, 1, 1), (224, 1, 3), (256, 3, 1)]],
}


def _inception_resnet(options: Options) -> Model:
    image = options.begin(299, 75)
    x = _convolution(image, (32, 3, 3), 2, "valid")
    x = _convolution(x, (32, 3, 3), 1, "valid")
    x = _convolution(x, (64, 3, 3))
    x = layers.MaxPooling2D(3, strides=2)(x)
    x = _convolution(x, (80, 1, 1), 1, "valid")
    x = _convolution(x, (192, 3, 3), 1, "valid")
    x = layers.MaxPooling2D(3, strides=2)(x)
    branches = [
        _chain(x, [(96, 1, 1)]),
        _chain(x, [(48, 1, 1), (64, 5, 5)]),
        _chain(x, [(64, 1, 1), (96, 3, 3), (96, 3, 3)]),
    ]
    pool = layers.AveragePooling2D(3, strides=1, padding="same")(x)
    x = layers.Concatenate(name="mixed_5b")([*branches, _convolution(pool, (64, 1, 1))])
    for i in range(1, 11):
        x = _residual(x, "block35", i, 0.17)
    x = _halved(x, [[(384, 3, 3)], [(256, 1, 1), (256, 3, 3), (384, 3, 3)]], "mixed_6a")
    for i in range(1, 21):
        x = _residual(x, "block17", i, 0.1)
    last = [(256, 1, 1), (288, 3, 3), (320, 3, 3)]
    x = _halved(x, [[(256, 1, 1), (384, 3, 3)], [(256, 1, 1), (288, 3, 3)], last], "mixed_7a")
    for i in range(1, 10):
        x = _residual(x, "block8", i, 0.2)
    x = _residual(x, "block8", 10, 1.0, is_last=True)
    x = _convolution(x, (1536, 1, 1), name="conv_7b")
    return options.end(x, image, pool_names=(None, None))


def _convolution(
    x: Any,
    kernel: _Kernel,
    stride: int = 1,
    padding: Padding = "same",
    name: str | None = None,
) -> Any:
    filters, *size = kernel
    x = layers.Conv2D(filters, size, strides=stride, padding=padding, use_bias=False, name=name)(x)
    x = layers.BatchNormalization(scale=False, name=name and f"{name}_bn")(x)
    return layers.Activation("relu", name=name and f"{name}_ac")(x)


def _chain(x: Any, kernels: Sequence[_Kernel]) -> Any:
    for kernel in kernels:
        x = _convolution(x, kernel)
    return x


def _halved(x: Any, chains: Sequence[Sequence[_Kernel]], name: str) -> Any:
    """Chains whose last step halves the image, and a pooling that does."""
    branches = [_convolution(_chain(x, first), last, 2, "valid") for *first, last in chains]
    branches.append(layers.MaxPooling2D(3, strides=2)(x))
    return layers.Concatenate(name=name)(branches)


def _residual(x: Any, kind: str, number: int, scale: float, is_last: bool = False) -> Any:
    name = f"{kind}_{number}"
    branches = [_chain(x, kernels) for kernels in _BRANCHES[kind]]
    mixed = layers.Concatenate(name=f"{name}_mixed")(branches)
    up = layers.Conv2D(x.shape[-1], 1, padding="same", name=f"{name}_conv")(mixed)
    x = CustomScaleLayer(scale)([x, up])
    return x if is_last else layers.Activation("relu", name=f"{name}_ac")(x)


InceptionResNetV2 = architecture(
    "InceptionResNetV2",
    _PUBLISHED,
    _inception_resnet,
    "Inception-ResNet-v2.",
    'Szegedy et al., "Inception-v4, Inception-ResNet and the impact of residual connections on '
    'learning", 2016, arXiv:1602.07261.',
    name="inception_resnet_v2",
)


def preprocess_input(x: Any, data_format: DataFormat | None = None) -> Any:
    """Pixels from 0 to 255 to the range from -1 to 1; see `imagenet_utils.preprocess_input`."""
    return imagenet_utils.preprocess_input(x, data_format, "tf")
