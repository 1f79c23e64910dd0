"""ConvNeXt: convolutional blocks after the manner of transformers."""

from __future__ import annotations

from typing import Any, Protocol

from laminar import layers
from laminar.models import Model, Sequential

from ..typing import DataFormat
from .common import Options, Published, example
from .imagenet_utils import decode_predictions as decode_predictions
from .layer_scale import LayerScale

_EPSILON = 1e-6
_SCALE = 1e-6  # what LayerScale begins as
_MEAN_RGB, _DEVIATION_RGB = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# Blocks in each stage, channels of the first.
_SIZES = {
    "tiny": ((3, 3, 9, 3), 96),
    "small": ((3, 3, 27, 3), 96),
    "base": ((3, 3, 27, 3), 128),
    "large": ((3, 3, 27, 3), 192),
    "xlarge": ((3, 3, 27, 3), 256),
}
_DIGESTS = {
    "tiny": (
        "8ae6e78ce2933352b1ef4008e6dd2f17bc40771563877d156bc6426c7cf503ff",
        "d547c096cabd03329d7be5562c5e14798aa39ed24b474157cef5e85ab9e49ef1",
    ),
    "small": (
        "ce1277d8f1ee5a0ef0e171469089c18f5233860ceaf9b168049cb9263fd7483c",
        "6fc8009faa2f00c1c1dfce59feea9b0745eb260a7dd11bee65c8e20843da6eab",
    ),
    "base": (
        "52cbb006d3dadd03f6e095a8ca1aca47aecdd75acb4bc74bce1f5c695d0086e6",
        "40a20c5548a5e9202f69735ecc06c990e6b7c9d2de39f0361e27baeb24cb7c45",
    ),
    "large": (
        "070c5ed9ed289581e477741d3b34beffa920db8cf590899d6d2c67fba2a198a6",
        "96f02b6f0753d4f543261bc9d09bed650f24dd6bc02ddde3066135b63d23a1cd",
    ),
    "xlarge": (
        "c1f5ccab661354fc3a79a10fa99af82f0fbf10ec65cb894a3ae0815f17a889ee",
        "de3f8a54174130e0cecdc71583354753d557fcf1f4487331558e2a16ba0cfe05",
    ),
}


def _published(size: str) -> Published:
    top, bare = _DIGESTS[size]
    return Published(
        "tensorflow/keras-applications/convnext/",
        (f"convnext_{size}.h5", top),
        (f"convnext_{size}_notop.h5", bare),
    )


def _convnext(options: Options, size: str, include_preprocessing: bool) -> Model:
    blocks, channels = _SIZES[size]
    name = options.name
    image = x = options.begin(224)
    if include_preprocessing and x.shape[-1] == 3:
        x = layers.Normalization(
            mean=[mean * 255 for mean in _MEAN_RGB],
            variance=[(deviation * 255) ** 2 for deviation in _DEVIATION_RGB],
            name=f"{name}_prestem_normalization",
        )(x)
    for stage, count in enumerate(blocks):
        filters = channels << stage
        x = (_stem(filters, name) if stage == 0 else _halving(filters, stage - 1, name))(x)
        for i in range(count):
            x = _block(x, filters, f"{name}_stage_{stage}_block_{i}")
    if not options.include_top:
        x = options.pooled(x, (None, None))
        return options.complete(layers.LayerNormalization(epsilon=_EPSILON)(x), image)
    x = layers.GlobalAveragePooling2D(name=f"{name}_head_gap")(x)
    x = layers.LayerNormalization(epsilon=_EPSILON, name=f"{name}_head_layernorm")(x)
    x = layers.Dense(
        options.classes, activation=options.classifier_activation, name=f"{name}_head_dense"
    )(x)
    return options.complete(x, image)


def _stem(filters: int, name: str) -> Sequential:
    return Sequential(
        [
            layers.Conv2D(filters, 4, strides=4, name=f"{name}_stem_conv"),
            layers.LayerNormalization(epsilon=_EPSILON, name=f"{name}_stem_layernorm"),
        ],
        name=f"{name}_stem",
    )


def _halving(filters: int, number: int, name: str) -> Sequential:
    return Sequential(
        [
            layers.LayerNormalization(
                epsilon=_EPSILON, name=f"{name}_downsampling_layernorm_{number}"
            ),
            layers.Conv2D(filters, 2, strides=2, name=f"{name}_downsampling_conv_{number}"),
        ],
        name=f"{name}_downsampling_block_{number}",
    )


def _block(x: Any, filters: int, name: str) -> Any:
    """A depthwise 7x7 convolution and two dense layers, added to what goes in."""
    y = layers.Conv2D(filters, 7, padding="same", groups=filters, name=f"{name}_depthwise_conv")(x)
    y = layers.LayerNormalization(epsilon=_EPSILON, name=f"{name}_layernorm")(y)
    y = layers.Dense(4 * filters, name=f"{name}_pointwise_conv_1")(y)
    y = layers.Activation("gelu", name=f"{name}_gelu")(y)
    y = layers.Dense(filters, name=f"{name}_pointwise_conv_2")(y)
    y = LayerScale(_SCALE, filters, name=f"{name}_layer_scale")(y)
    return x + layers.Activation("linear", name=f"{name}_identity")(y)


class _Architecture(Protocol):
    """A public function that makes a model; see `common.Architecture`."""

    def __call__(
        self,
        include_top: bool = True,
        include_preprocessing: bool = True,
        weights: Any = "imagenet",
        input_tensor: Any = None,
        input_shape: Any = None,
        pooling: str | None = None,
        classes: int = 1000,
        classifier_activation: Any = "softmax",
        name: str = ...,
    ) -> Model: ...


def _sized(called: str, size: str) -> _Architecture:
    """The network of a size, under its public name."""

    def make(
        include_top: bool = True,
        include_preprocessing: bool = True,
        weights: Any = "imagenet",
        input_tensor: Any = None,
        input_shape: Any = None,
        pooling: str | None = None,
        classes: int = 1000,
        classifier_activation: Any = "softmax",
        name: str = f"convnext_{size}",
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
            _published(size),
        )
        return _convnext(options, size, include_preprocessing)

    make.__name__ = make.__qualname__ = called
    make.__doc__ = f"""{called}.

    Args:
        include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation,
            name: see `common.Options`.
        include_preprocessing: whether the model normalizes pixels from 0 to 255 itself.

    Shapes:
        images: (batch, height, width, 3) -> scores: (batch, classes); without the classifier
            features, (batch, height / 32, width / 32, channels)

    Source: Liu et al., "A ConvNet for the 2020s", 2022, arXiv:2201.03545.

{example(called)}
    """
    return make


ConvNeXtTiny = _sized("ConvNeXtTiny", "tiny")
ConvNeXtSmall = _sized("ConvNeXtSmall", "small")
ConvNeXtBase = _sized("ConvNeXtBase", "base")
ConvNeXtLarge = _sized("ConvNeXtLarge", "large")
ConvNeXtXLarge = _sized("ConvNeXtXLarge", "xlarge")


def preprocess_input(x: Any, data_format: DataFormat | None = None) -> Any:
    """Give `x` as it is: the model takes pixels from 0 to 255."""
    return x
