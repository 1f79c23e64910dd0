"""MobileNetV2: inverted residual blocks with depthwise convolutions."""

from __future__ import annotations

from typing import Any

from laminar import layers
from laminar.models import Model

from ..typing import DataFormat
from . import imagenet_utils
from .common import Options, Published, pad_for_stride, round_channels
from .imagenet_utils import decode_predictions as decode_predictions

# Of each block: channels, stride, how often its input is expanded.
_BLOCKS = (
    (16, 1, 1),
    *((24, 2, 6), (24, 1, 6)),
    *((32, 2, 6), (32, 1, 6), (32, 1, 6)),
    *((64, 2, 6), (64, 1, 6), (64, 1, 6), (64, 1, 6)),
    *((96, 1, 6), (96, 1, 6), (96, 1, 6)),
    *((160, 2, 6), (160, 1, 6), (160, 1, 6)),
    (320, 1, 6),
)
_SIZES = (96, 128, 160, 192, 224)  # of images, for which there are trained weights


def MobileNetV2(  # noqa: N802  # Keras's name
    input_shape: Any = None,
    alpha: float = 1.0,
    include_top: bool = True,
    weights: Any = "imagenet",
    input_tensor: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Any = "softmax",
    name: str | None = None,
) -> Model:
    """MobileNetV2.

    Args:
        input_shape, include_top, weights, input_tensor, pooling, classes, classifier_activation,
            name: see `common.Options`.
        alpha: the width: a factor for the channels of all layers.

    Shapes:
        images: (batch, height, width, 3) -> scores: (batch, classes); without the classifier
            features, (batch, height / 32, width / 32, channels)

    Source: Sandler et al., "MobileNetV2", 2018, arXiv:1801.04381.

    Examples:
        >>> options = {"input_shape": (96, 96, 3), "classes": 10}
        >>> model = laminar.applications.MobileNetV2(weights=None, **options)
        >>> model.output_shape
        (None, 10)
    """
    size = _size(input_shape, input_tensor)
    options = Options(
        name or f"mobilenetv2_{alpha:0.2f}_{size}",
        include_top,
        weights,
        input_tensor,
        input_shape,
        pooling,
        classes,
        classifier_activation,
        _published(alpha, size),
    )
    image = options.begin(size)
    filters = round_channels(32 * alpha)
    x = layers.Conv2D(filters, 3, strides=2, padding="same", use_bias=False, name="Conv1")(image)
    x = layers.ReLU(6.0, name="Conv1_relu")(_normalized(x, "bn_Conv1"))
    for i, (filters, stride, expansion) in enumerate(_BLOCKS):
        prefix = f"block_{i}_" if i else "expanded_conv_"
        x = _block(x, round_channels(int(filters * alpha)), stride, expansion, prefix)
    filters = round_channels(1280 * alpha) if alpha > 1 else 1280
    x = layers.Conv2D(filters, 1, use_bias=False, name="Conv_1")(x)
    x = layers.ReLU(6.0, name="out_relu")(_normalized(x, "Conv_1_bn"))
    return options.end(x, image, pool_names=(None, None), top_pool_name=None)


def _size(input_shape: Any, input_tensor: Any) -> int:
    """The size of images that the trained weights are for."""
    shape = input_shape
    if shape is None and input_tensor is not None:
        shape = input_tensor.shape[1:]
    if shape is None or len(shape) != 3 or shape[0] != shape[1] or shape[0] not in _SIZES:
        return 224
    return int(shape[0])


def _published(alpha: float, size: int) -> Published:
    stem = f"mobilenet_v2_weights_tf_dim_ordering_tf_kernels_{float(alpha)}_{size}"
    folder = "tensorflow/keras-applications/mobilenet_v2/"
    return Published(folder, (f"{stem}.h5", None), (f"{stem}_no_top.h5", None))


def _normalized(x: Any, name: str) -> Any:
    return layers.BatchNormalization(epsilon=1e-3, momentum=0.999, name=name)(x)


def _block(x: Any, filters: int, stride: int, expansion: int, prefix: str) -> Any:
    """Expand by a 1x1, filter by a depthwise 3x3, project by a 1x1 convolution."""
    y = x
    if expansion > 1:
        wide = expansion * x.shape[-1]
        y = layers.Conv2D(wide, 1, padding="same", use_bias=False, name=f"{prefix}expand")(y)
        y = layers.ReLU(6.0, name=f"{prefix}expand_relu")(_normalized(y, f"{prefix}expand_BN"))
    if stride == 2:
        y = layers.ZeroPadding2D(pad_for_stride(y, 3), name=f"{prefix}pad")(y)
    y = layers.DepthwiseConv2D(
        3,
        strides=stride,
        padding="same" if stride == 1 else "valid",
        use_bias=False,
        name=f"{prefix}depthwise",
    )(y)
    y = layers.ReLU(6.0, name=f"{prefix}depthwise_relu")(_normalized(y, f"{prefix}depthwise_BN"))
    y = layers.Conv2D(filters, 1, padding="same", use_bias=False, name=f"{prefix}project")(y)
    y = _normalized(y, f"{prefix}project_BN")
    if stride == 1 and x.shape[-1] == filters:
        return layers.Add(name=f"{prefix}add")([x, y])
    return y


def preprocess_input(x: Any, data_format: DataFormat | None = None) -> Any:
    """Pixels from 0 to 255 to the range from -1 to 1; see `imagenet_utils.preprocess_input`."""
    return imagenet_utils.preprocess_input(x, data_format, "tf")
