"""MobileNetV3: inverted residual blocks with squeeze and excitation."""

from __future__ import annotations

from typing import Any, NamedTuple

from laminar import layers
from laminar.models import Model

from ..typing import DataFormat
from .common import Options, Published, pad_for_stride, round_channels
from .imagenet_utils import decode_predictions as decode_predictions


class _Block(NamedTuple):
    """One block: `wide` kernels are 5x5; `swish` ones end in hard swish, others in ReLU."""

    expansion: float
    filters: int
    stride: int
    wide: bool
    squeeze: bool
    swish: bool


_SMALL = (
    _Block(1, 16, 2, False, True, False),
    _Block(72 / 16, 24, 2, False, False, False),
    _Block(88 / 24, 24, 1, False, False, False),
    _Block(4, 40, 2, True, True, True),
    _Block(6, 40, 1, True, True, True),
    _Block(6, 40, 1, True, True, True),
    _Block(3, 48, 1, True, True, True),
    _Block(3, 48, 1, True, True, True),
    _Block(6, 96, 2, True, True, True),
    _Block(6, 96, 1, True, True, True),
    _Block(6, 96, 1, True, True, True),
)
_LARGE = (
    _Block(1, 16, 1, False, False, False),
    _Block(4, 24, 2, False, False, False),
    _Block(3, 24, 1, False, False, False),
    _Block(3, 40, 2, True, True, False),
    _Block(3, 40, 1, True, True, False),
    _Block(3, 40, 1, True, True, False),
    _Block(6, 80, 2, False, False, True),
    _Block(2.5, 80, 1, False, False, True),
    _Block(2.3, 80, 1, False, False, True),
    _Block(2.3, 80, 1, False, False, True),
    _Block(6, 112, 1, False, True, True),
    _Block(6, 112, 1, False, True, True),
    _Block(6, 160, 2, True, True, True),
    _Block(6, 160, 1, True, True, True),
    _Block(6, 160, 1, True, True, True),
)
_DIGESTS = {
    "large_224_0.75_float": (
        "765b44a33ad4005b3ac83185abf1d0eb",
        "40af19a13ebea4e2ee0c676887f69a2e",
    ),
    "large_224_1.0_float": ("59e551e166be033d707958cf9e29a6a7", "07fb09a5933dd0c8eaafa16978110389"),
    "large_minimalistic_224_1.0_float": (
        "675e7b876c45c57e9e63e6d90a36599c",
        "ec5221f64a2f6d1ef965a614bdae7973",
    ),
    "small_224_0.75_float": (
        "cb65d4e5be93758266aa0a7f2c6708b7",
        "ebdb5cc8e0b497cd13a7c275d475c819",
    ),
    "small_224_1.0_float": ("8768d4c2e7dee89b9d02b2d03d65d862", "d3e8ec802a04aa4fc771ee12a9a9b836"),
    "small_minimalistic_224_1.0_float": (
        "99cd97fb2fcdad2bf028eb838de69e37",
        "cde8136e733e811080d9fcd8a252f7e4",
    ),
}


def MobileNetV3Small(  # noqa: N802  # Keras's name
    input_shape: Any = None,
    alpha: float = 1.0,
    minimalistic: bool = False,
    include_top: bool = True,
    weights: Any = "imagenet",
    input_tensor: Any = None,
    classes: int = 1000,
    pooling: str | None = None,
    dropout_rate: float = 0.2,
    classifier_activation: Any = "softmax",
    include_preprocessing: bool = True,
    name: str = "MobileNetV3Small",
) -> Model:
    """MobileNetV3, the small one; see `MobileNetV3Large`.

    Examples:
        >>> options = {"input_shape": (96, 96, 3), "classes": 10}
        >>> model = laminar.applications.MobileNetV3Small(weights=None, **options)
        >>> model.output_shape
        (None, 10)
    """
    options = Options(
        name,
        include_top,
        weights,
        input_tensor,
        input_shape,
        pooling,
        classes,
        classifier_activation,
        _published("small", alpha, minimalistic),
    )
    return _mobilenet(
        options, _SMALL, 1024, alpha, minimalistic, dropout_rate, include_preprocessing
    )


def MobileNetV3Large(  # noqa: N802  # Keras's name
    input_shape: Any = None,
    alpha: float = 1.0,
    minimalistic: bool = False,
    include_top: bool = True,
    weights: Any = "imagenet",
    input_tensor: Any = None,
    classes: int = 1000,
    pooling: str | None = None,
    dropout_rate: float = 0.2,
    classifier_activation: Any = "softmax",
    include_preprocessing: bool = True,
    name: str = "MobileNetV3Large",
) -> Model:
    """MobileNetV3, the large one.

    Args:
        input_shape, include_top, weights, input_tensor, classes, pooling, classifier_activation,
            name: see `common.Options`.
        alpha: the width: a factor for the channels of all layers.
        minimalistic: without squeeze and excitation, hard swish and 5x5 kernels.
        dropout_rate: before the classifier.
        include_preprocessing: whether pixels from 0 to 255 go in; else they are from -1 to 1.

    Shapes:
        images: (batch, height, width, 3) -> scores: (batch, classes); without the classifier
            features, (batch, height / 32, width / 32, channels)

    Source: Howard et al., "Searching for MobileNetV3", 2019, arXiv:1905.02244.

    Examples:
        >>> options = {"input_shape": (96, 96, 3), "classes": 10}
        >>> model = laminar.applications.MobileNetV3Large(weights=None, **options)
        >>> model.output_shape
        (None, 10)
    """
    options = Options(
        name,
        include_top,
        weights,
        input_tensor,
        input_shape,
        pooling,
        classes,
        classifier_activation,
        _published("large", alpha, minimalistic),
    )
    return _mobilenet(
        options, _LARGE, 1280, alpha, minimalistic, dropout_rate, include_preprocessing
    )


def _published(kind: str, alpha: float, minimalistic: bool) -> Published:
    stem = f"{kind}{'_minimalistic' if minimalistic else ''}_224_{float(alpha)}_float"
    top, bare = _DIGESTS.get(stem, (None, None))
    return Published(
        "tensorflow/keras-applications/mobilenet_v3/",
        (f"weights_mobilenet_v3_{stem}.h5", top),
        (f"weights_mobilenet_v3_{stem}_no_top_v2.h5", bare),
    )


def _mobilenet(
    options: Options,
    blocks: tuple[_Block, ...],
    last: int,
    alpha: float,
    minimalistic: bool,
    dropout_rate: float,
    include_preprocessing: bool,
) -> Model:
    image = x = options.begin(224)
    if include_preprocessing:
        x = layers.Rescaling(1.0 / 127.5, offset=-1.0)(x)
    x = layers.Conv2D(16, 3, strides=2, padding="same", use_bias=False, name="conv")(x)
    x = _activated(_normalized(x, "conv_bn"), not minimalistic)
    for i, block in enumerate(blocks):
        if minimalistic:
            block = block._replace(wide=False, squeeze=False, swish=False)
        prefix = f"expanded_conv_{i}_" if i else "expanded_conv_"
        x = _apply(block, x, round_channels(block.filters * alpha), i > 0, prefix)
    filters = round_channels(6 * x.shape[-1])
    x = layers.Conv2D(filters, 1, padding="same", use_bias=False, name="conv_1")(x)
    x = _activated(_normalized(x, "conv_1_bn"), not minimalistic)
    if not options.include_top:
        return options.complete(options.pooled(x, ("avg_pool", "max_pool")), image)
    x = layers.GlobalAveragePooling2D(keepdims=True)(x)
    filters = round_channels(last * alpha) if alpha > 1 else last
    x = layers.Conv2D(filters, 1, padding="same", name="conv_2")(x)
    x = _activated(x, not minimalistic)
    if dropout_rate > 0:
        x = layers.Dropout(dropout_rate)(x)
    x = layers.Conv2D(options.classes, 1, padding="same", name="logits")(x)
    x = layers.Flatten()(x)
    return options.complete(
        layers.Activation(options.classifier_activation, name="predictions")(x), image
    )


def _normalized(x: Any, name: str) -> Any:
    return layers.BatchNormalization(epsilon=1e-3, momentum=0.999, name=name)(x)


def _activated(x: Any, swish: bool) -> Any:
    return layers.Activation("hard_swish")(x) if swish else layers.ReLU()(x)


def _apply(block: _Block, x: Any, filters: int, expands: bool, prefix: str) -> Any:
    """Expand by a 1x1, filter by a depthwise, weigh the channels, project by a 1x1 convolution."""
    y = x
    wide = round_channels(x.shape[-1] * block.expansion)
    if expands:
        y = layers.Conv2D(wide, 1, padding="same", use_bias=False, name=f"{prefix}expand")(y)
        y = _activated(_normalized(y, f"{prefix}expand_bn"), block.swish)
    size = 5 if block.wide else 3
    if block.stride == 2:
        y = layers.ZeroPadding2D(pad_for_stride(y, size), name=f"{prefix}depthwise_pad")(y)
    y = layers.DepthwiseConv2D(
        size,
        strides=block.stride,
        padding="same" if block.stride == 1 else "valid",
        use_bias=False,
        name=f"{prefix}depthwise",
    )(y)
    y = _activated(_normalized(y, f"{prefix}depthwise_bn"), block.swish)
    if block.squeeze:
        y = _weighed(y, wide, f"{prefix}squeeze_excite_")
    y = layers.Conv2D(filters, 1, padding="same", use_bias=False, name=f"{prefix}project")(y)
    y = _normalized(y, f"{prefix}project_bn")
    if block.stride == 1 and x.shape[-1] == filters:
        return layers.Add(name=f"{prefix}add")([x, y])
    return y


def _weighed(x: Any, filters: int, prefix: str) -> Any:
    """Squeeze and excitation: each channel times a weight made of the means of all."""
    y = layers.GlobalAveragePooling2D(keepdims=True, name=f"{prefix}avg_pool")(x)
    y = layers.Conv2D(round_channels(filters / 4), 1, padding="same", name=f"{prefix}conv")(y)
    y = layers.ReLU(name=f"{prefix}relu")(y)
    y = layers.Conv2D(filters, 1, padding="same", name=f"{prefix}conv_1")(y)
    y = layers.ReLU(6.0)(y + 3.0) * (1.0 / 6.0)
    return layers.Multiply(name=f"{prefix}mul")([x, y])


def preprocess_input(x: Any, data_format: DataFormat | None = None) -> Any:
    """Give `x` as it is: the model takes pixels from 0 to 255."""
    return x
