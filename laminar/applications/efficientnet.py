"""EfficientNet: inverted residual blocks whose width, depth and image size grow together."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from laminar import layers
from laminar.models import Model

from ..typing import DataFormat
from .common import (
    Architecture,
    Options,
    Published,
    architecture,
    pad_for_stride,
    round_channels,
)
from .imagenet_utils import decode_predictions as decode_predictions


class _Stage(NamedTuple):
    """Blocks of the same kind."""

    kernel_size: int
    repeats: int
    filters: int
    expansion: int
    stride: int


class _Scale(NamedTuple):
    """How a network is larger than B0, and the digests of its files."""

    width: float
    depth: float
    size: int
    dropout: float
    top: str
    bare: str


_STAGES = (
    _Stage(3, 1, 16, 1, 1),
    _Stage(3, 2, 24, 6, 2),
    _Stage(5, 2, 40, 6, 2),
    _Stage(3, 3, 80, 6, 2),
    _Stage(5, 3, 112, 6, 1),
    _Stage(5, 4, 192, 6, 2),
    _Stage(3, 1, 320, 6, 1),
)
_SCALES = {
    "b0": _Scale(
        1.0,
        1.0,
        224,
        0.2,
        "902e53a9f72be733fc0bcb005b3ebbac",
        "50bc09e76180e00e4465e1a485ddc09d",
    ),
    "b1": _Scale(
        1.0,
        1.1,
        240,
        0.2,
        "1d254153d4ab51201f1646940f018540",
        "74c4e6b3e1f6a1eea24c589628592432",
    ),
    "b2": _Scale(
        1.1,
        1.2,
        260,
        0.3,
        "b15cce36ff4dcbd00b6dd88e7857a6ad",
        "111f8e2ac8aa800a7a99e3239f7bfb39",
    ),
    "b3": _Scale(
        1.2,
        1.4,
        300,
        0.3,
        "ffd1fdc53d0ce67064dc6a9c7960ede0",
        "af6d107764bb5b1abb91932881670226",
    ),
    "b4": _Scale(
        1.4,
        1.8,
        380,
        0.4,
        "18c95ad55216b8f92d7e70b3a046e2fc",
        "ebc24e6d6c33eaebbd558eafbeedf1ba",
    ),
    "b5": _Scale(
        1.6,
        2.2,
        456,
        0.4,
        "ace28f2a6363774853a83a0b21b9421a",
        "38879255a25d3c92d5e44e04ae6cec6f",
    ),
    "b6": _Scale(
        1.8,
        2.6,
        528,
        0.5,
        "165f6e37dce68623721b423839de8be5",
        "9ecce42647a20130c1f39a5d4cb75743",
    ),
    "b7": _Scale(
        2.0,
        3.1,
        600,
        0.5,
        "8c03f828fec3ef71311cd463b6759d99",
        "cbcfe4450ddf6f3ad90b1b398090fe4a",
    ),
}
_DROP_CONNECT = 0.2  # the probability that the last block is left out; it grows from 0
KERNELS = {
    "class_name": "VarianceScaling",
    "config": {"scale": 2.0, "mode": "fan_out", "distribution": "truncated_normal"},
}
CLASSIFIER = {
    "class_name": "VarianceScaling",
    "config": {"scale": 1.0 / 3.0, "mode": "fan_out", "distribution": "uniform"},
}
_DEVIATION_RGB = (0.229, 0.224, 0.225)


def _published(kind: str) -> Published:
    scale = _SCALES[kind]
    name = f"efficientnet{kind}"
    return Published(
        "keras-applications/", (f"{name}.h5", scale.top), (f"{name}_notop.h5", scale.bare)
    )


def _efficientnet(options: Options, kind: str) -> Model:
    scale = _SCALES[kind]
    image = options.begin(scale.size)
    x = layers.Rescaling(1.0 / 255.0)(image)
    x = layers.Normalization(axis=3)(x)
    if options.weights == "imagenet":  # as its weights were trained
        x = layers.Rescaling([1.0 / math.sqrt(deviation) for deviation in _DEVIATION_RGB])(x)
    x = layers.ZeroPadding2D(pad_for_stride(x, 3), name="stem_conv_pad")(x)
    x = _convolution(x, round_channels(32 * scale.width), 3, "stem_conv", strides=2)
    x = activated(x, "stem_bn", "stem_activation")
    total = sum(_repeats(stage, scale) for stage in _STAGES)
    number = 0
    for i, stage in enumerate(_STAGES, 1):
        for j in range(_repeats(stage, scale)):
            drop = _DROP_CONNECT * number / total
            stride = stage.stride if j == 0 else 1
            name = f"block{i}{chr(ord('a') + j)}_"
            x = _block(x, stage, round_channels(stage.filters * scale.width), stride, drop, name)
            number += 1
    x = _convolution(x, round_channels(1280 * scale.width), 1, "top_conv")
    x = activated(x, "top_bn", "top_activation")
    return options.end(x, image, dropout=scale.dropout, kernel_initializer=CLASSIFIER)


def _repeats(stage: _Stage, scale: _Scale) -> int:
    return math.ceil(scale.depth * stage.repeats)


def _convolution(x: Any, filters: int, size: int, name: str, strides: int = 1) -> Any:
    return layers.Conv2D(
        filters,
        size,
        strides=strides,
        padding="same" if strides == 1 else "valid",
        use_bias=False,
        kernel_initializer=KERNELS,
        name=name,
    )(x)


def activated(x: Any, normalization: str, activation: str, momentum: float = 0.99) -> Any:
    """Normalized over the batch, and then swish; the two layers' names are given."""
    x = layers.BatchNormalization(momentum=momentum, name=normalization)(x)
    return layers.Activation("swish", name=activation)(x)


def _block(x: Any, stage: _Stage, filters: int, stride: int, drop: float, name: str) -> Any:
    """Expand by a 1x1, filter by a depthwise, weigh the channels, project by a 1x1 convolution."""
    y = x
    incoming = x.shape[-1]
    wide = incoming * stage.expansion
    if stage.expansion > 1:
        y = _convolution(y, wide, 1, f"{name}expand_conv")
        y = activated(y, f"{name}expand_bn", f"{name}expand_activation")
    if stride == 2:
        y = layers.ZeroPadding2D(pad_for_stride(y, stage.kernel_size), name=f"{name}dwconv_pad")(y)
    y = layers.DepthwiseConv2D(
        stage.kernel_size,
        strides=stride,
        padding="same" if stride == 1 else "valid",
        use_bias=False,
        depthwise_initializer=KERNELS,
        name=f"{name}dwconv",
    )(y)
    y = activated(y, f"{name}bn", f"{name}activation")
    y = weighed(y, wide, max(1, incoming // 4), f"{name}se_")
    y = _convolution(y, filters, 1, f"{name}project_conv")
    y = layers.BatchNormalization(name=f"{name}project_bn")(y)
    if stride > 1 or incoming != filters:
        return y
    if drop > 0:  # the same for all of an image: its block is left out
        y = layers.Dropout(drop, noise_shape=(None, 1, 1, 1), name=f"{name}drop")(y)
    return layers.Add(name=f"{name}add")([y, x])


def weighed(x: Any, filters: int, squeezed: int, name: str) -> Any:
    """Squeeze and excitation: each channel times a weight made of the means of all."""
    y = layers.GlobalAveragePooling2D(name=f"{name}squeeze")(x)
    y = layers.Reshape((1, 1, filters), name=f"{name}reshape")(y)
    for count, activation, part in ((squeezed, "swish", "reduce"), (filters, "sigmoid", "expand")):
        y = layers.Conv2D(
            count,
            1,
            padding="same",
            activation=activation,
            kernel_initializer=KERNELS,
            name=f"{name}{part}",
        )(y)
    return layers.Multiply(name=f"{name}excite")([x, y])


def _scaled(kind: str) -> Architecture:
    """The network of a scale."""

    def build(options: Options) -> Model:
        return _efficientnet(options, kind)

    return architecture(
        f"EfficientNet{kind.upper()}",
        _published(kind),
        build,
        f"EfficientNet{kind.upper()}, of images with pixels from 0 to 255.",
        'Tan and Le, "EfficientNet", 2019, arXiv:1905.11946.',
    )


EfficientNetB0 = _scaled("b0")
EfficientNetB1 = _scaled("b1")
EfficientNetB2 = _scaled("b2")
EfficientNetB3 = _scaled("b3")
EfficientNetB4 = _scaled("b4")
EfficientNetB5 = _scaled("b5")
EfficientNetB6 = _scaled("b6")
EfficientNetB7 = _scaled("b7")


def preprocess_input(x: Any, data_format: DataFormat | None = None) -> Any:
    """Give `x` as it is: the model takes pixels from 0 to 255."""
    return x
