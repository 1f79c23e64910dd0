"""EfficientNetV2: EfficientNet whose first blocks are plain convolutions, which train faster."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

from laminar import layers
from laminar.models import Model

from ..typing import DataFormat
from .common import Options, Published, example
from .efficientnet import CLASSIFIER, KERNELS, activated, weighed
from .imagenet_utils import decode_predictions as decode_predictions

_MOMENTUM = 0.9  # of the batch normalizations
_DROP_CONNECT = 0.2  # the probability that the last block is left out; it grows from 0
_MEAN_RGB = (0.485, 0.456, 0.406)
_DEVIATION_RGB = (0.229, 0.224, 0.225)


class _Stage(NamedTuple):
    """Blocks of the same kind; `is_fused`: one 3x3 convolution expands and filters."""

    repeats: int
    filters: int
    expansion: int
    stride: int
    is_fused: bool


class _Network(NamedTuple):
    """What a network is made of, and the digests of its files.

    `width` and `depth` are factors for the channels and repeats of all stages.
    """

    stem: int
    stages: tuple[_Stage, ...]
    size: int
    top: str
    bare: str
    width: float = 1.0
    depth: float = 1.0


_BASE = (
    _Stage(1, 16, 1, 1, True),
    _Stage(2, 32, 4, 2, True),
    _Stage(2, 48, 4, 2, True),
    _Stage(3, 96, 4, 2, False),
    _Stage(5, 112, 6, 1, False),
    _Stage(8, 192, 6, 2, False),
)
_SMALL = (
    _Stage(2, 24, 1, 1, True),
    _Stage(4, 48, 4, 2, True),
    _Stage(4, 64, 4, 2, True),
    _Stage(6, 128, 4, 2, False),
    _Stage(9, 160, 6, 1, False),
    _Stage(15, 256, 6, 2, False),
)
_MEDIUM = (
    _Stage(3, 24, 1, 1, True),
    _Stage(5, 48, 4, 2, True),
    _Stage(5, 80, 4, 2, True),
    _Stage(7, 160, 4, 2, False),
    _Stage(14, 176, 6, 1, False),
    _Stage(18, 304, 6, 2, False),
    _Stage(5, 512, 6, 1, False),
)
_LARGE = (
    _Stage(4, 32, 1, 1, True),
    _Stage(7, 64, 4, 2, True),
    _Stage(7, 96, 4, 2, True),
    _Stage(10, 192, 4, 2, False),
    _Stage(19, 224, 6, 1, False),
    _Stage(25, 384, 6, 2, False),
    _Stage(7, 640, 6, 1, False),
)
_NETWORKS = {
    "b0": _Network(
        32,
        _BASE,
        224,
        "21ecbf6da12460d5c40bb2f29ceb2188",
        "893217f2bb855e2983157299931e43ff",
    ),
    "b1": _Network(
        32,
        _BASE,
        240,
        "069f0534ff22adf035c89e2d9547a9dc",
        "0e80663031ca32d657f9caa404b6ec37",
        depth=1.1,
    ),
    "b2": _Network(
        32,
        _BASE,
        260,
        "424e49f28180edbde1e94797771950a7",
        "1dfe2e7a5d45b6632553a8961ea609eb",
        width=1.1,
        depth=1.2,
    ),
    "b3": _Network(
        32,
        _BASE,
        300,
        "1f1fc43bd98a6e4fd8fdfd551e02c7a0",
        "f6abf7b5849ac99a89b50dd3fd532856",
        width=1.2,
        depth=1.4,
    ),
    "s": _Network(
        24,
        _SMALL,
        384,
        "e1d88a8495beba45748fedd0cecbe016",
        "af0682fb74e8c54910f2d4393339c070",
    ),
    "m": _Network(
        24,
        _MEDIUM,
        480,
        "a3bf6aa3276309f4fc6a34aa114c95cd",
        "1b8dc055df72dde80d614482840fe342",
    ),
    "l": _Network(
        32,
        _LARGE,
        480,
        "27e6d408b53c7ebc868fefa357689935",
        "b0b66b5c863aef5b46e8608fe1711615",
    ),
}


def _channels(count: float) -> int:
    """`count` rounded to a multiple of 8."""
    return max(8, int(count + 4) // 8 * 8)


def _repeats(stage: _Stage, network: _Network) -> int:
    return math.ceil(network.depth * stage.repeats)


def _efficientnet(options: Options, kind: str, include_preprocessing: bool) -> Model:
    network = _NETWORKS[kind]
    image = options.begin(network.size)
    x = image
    if include_preprocessing and kind.startswith("b") and image.shape[-1] == 3:
        x = layers.Rescaling(1.0 / 255)(x)
        variance = [deviation**2 for deviation in _DEVIATION_RGB]
        x = layers.Normalization(axis=3, mean=list(_MEAN_RGB), variance=variance)(x)
    elif include_preprocessing:
        x = layers.Rescaling(1.0 / 128, offset=-1)(x)
    x = _convolution(x, _channels(network.stem * network.width), 3, "stem_conv", strides=2)
    x = activated(x, "stem_bn", "stem_activation", _MOMENTUM)
    total = sum(stage.repeats for stage in network.stages)
    number = 0
    for i, stage in enumerate(network.stages, 1):
        for j in range(_repeats(stage, network)):
            drop = _DROP_CONNECT * number / total
            stride = stage.stride if j == 0 else 1
            name = f"block{i}{chr(ord('a') + j)}_"
            x = _block(x, stage, _channels(stage.filters * network.width), stride, drop, name)
            number += 1
    x = _convolution(x, _channels(1280 * network.width), 1, "top_conv")
    x = activated(x, "top_bn", "top_activation", _MOMENTUM)
    return options.end(x, image, dropout=0.2, kernel_initializer=CLASSIFIER)


def _convolution(x: Any, filters: int, size: int, name: str, strides: int = 1) -> Any:
    return layers.Conv2D(
        filters,
        size,
        strides=strides,
        padding="same",
        use_bias=False,
        kernel_initializer=KERNELS,
        name=name,
    )(x)


def _block(x: Any, stage: _Stage, filters: int, stride: int, drop: float, name: str) -> Any:
    """Expand, filter, weigh the channels, project; expanding and filtering may be one."""
    incoming = x.shape[-1]
    wide = incoming * stage.expansion
    y = x
    if stage.expansion > 1:
        size, strides = (3, stride) if stage.is_fused else (1, 1)
        y = _convolution(y, wide, size, f"{name}expand_conv", strides)
        y = activated(y, f"{name}expand_bn", f"{name}expand_activation", _MOMENTUM)
    if not stage.is_fused:
        y = layers.DepthwiseConv2D(
            3,
            strides=stride,
            padding="same",
            use_bias=False,
            depthwise_initializer=KERNELS,
            name=f"{name}dwconv2",
        )(y)
        y = activated(y, f"{name}bn", f"{name}activation", _MOMENTUM)
        y = weighed(y, wide, max(1, incoming // 4), f"{name}se_")
    is_single = stage.is_fused and stage.expansion == 1  # one convolution is all of the block
    size, strides = (3, stride) if is_single else (1, 1)
    y = _convolution(y, filters, size, f"{name}project_conv", strides)
    y = layers.BatchNormalization(momentum=_MOMENTUM, name=f"{name}project_bn")(y)
    if is_single:
        y = layers.Activation("swish", name=f"{name}project_activation")(y)
    if stride > 1 or incoming != filters:
        return y
    if drop > 0:  # the same for all of an image: its block is left out
        y = layers.Dropout(drop, noise_shape=(None, 1, 1, 1), name=f"{name}drop")(y)
    return layers.Add(name=f"{name}add")([y, x])


class _Architecture(Protocol):
    """A public function that makes a model; see `common.Architecture`."""

    def __call__(
        self,
        include_top: bool = True,
        weights: Any = "imagenet",
        input_tensor: Any = None,
        input_shape: Any = None,
        pooling: str | None = None,
        classes: int = 1000,
        classifier_activation: Any = "softmax",
        include_preprocessing: bool = True,
        name: str = ...,
    ) -> Model: ...


def _of_kind(kind: str) -> _Architecture:
    """The public function that makes a network."""
    called = f"EfficientNetV2{kind.upper()}"
    default = f"efficientnetv2-{kind}"
    network = _NETWORKS[kind]
    published = Published(
        "tensorflow/keras-applications/efficientnet_v2/",
        (f"{default}.h5", network.top),
        (f"{default}_notop.h5", network.bare),
    )

    def make(
        include_top: bool = True,
        weights: Any = "imagenet",
        input_tensor: Any = None,
        input_shape: Any = None,
        pooling: str | None = None,
        classes: int = 1000,
        classifier_activation: Any = "softmax",
        include_preprocessing: bool = True,
        name: str = default,
    ) -> Model:
        options = Options(
            name,
            include_top,
            weights,
            input_tensor,
            input_shape,
            pooling,
            classes,
            classifier_activation,
            published,
        )
        return _efficientnet(options, kind, include_preprocessing)

    make.__name__ = make.__qualname__ = called
    make.__doc__ = f"""{called}, of images with pixels from 0 to 255.

    Args:
        include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation,
            name: see `common.Options`.
        include_preprocessing: whether pixels from 0 to 255 go in; else they are as the weights
            were trained, about -1 to 1.

    Shapes:
        images: (batch, height, width, 3) -> scores: (batch, classes); without the classifier
            features, (batch, about height / 32, about width / 32, channels)

    Source: Tan and Le, "EfficientNetV2: smaller models and faster training", 2021,
        arXiv:2104.00298.

{example(called)}
    """
    return make


EfficientNetV2B0 = _of_kind("b0")
EfficientNetV2B1 = _of_kind("b1")
EfficientNetV2B2 = _of_kind("b2")
EfficientNetV2B3 = _of_kind("b3")
EfficientNetV2S = _of_kind("s")
EfficientNetV2M = _of_kind("m")
EfficientNetV2L = _of_kind("l")


def preprocess_input(x: Any, data_format: DataFormat | None = None) -> Any:
    """Give `x` as it is: the model takes pixels from 0 to 255."""
    return x
