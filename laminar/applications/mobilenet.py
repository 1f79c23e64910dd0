"""MobileNet: each 3x3 convolution is one of single channels, then one of single pixels."""

from __future__ import annotations

from typing import Any

from laminar import layers
from laminar.models import Model

from ..typing import DataFormat
from . import imagenet_utils
from .common import Options, Published
from .imagenet_utils import decode_predictions as decode_predictions

# Of each block: channels and stride.
_BLOCKS = (
    (64, 1),
    *((128, 2), (128, 1)),
    *((256, 2), (256, 1)),
    *((512, 2), (512, 1), (512, 1), (512, 1), (512, 1), (512, 1)),
    *((1024, 2), (1024, 1)),
)
_SIZES = (128, 160, 192, 224)  # of images, for which there are trained weights
_WIDTHS = {1.0: "1_0", 0.75: "7_5", 0.5: "5_0"}  # in the names of files; another is 0.25


def MobileNet(  # noqa: N802  # Keras's name
    input_shape: Any = None,
    alpha: float = 1.0,
    depth_multiplier: int = 1,
    dropout: float = 1e-3,
    include_top: bool = True,
    weights: Any = "imagenet",
    input_tensor: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Any = "softmax",
    name: str | None = None,
) -> Model:
    """MobileNet.

    Args:
        input_shape, include_top, weights, input_tensor, pooling, classes, classifier_activation,
            name: see `common.Options`.
        alpha: the width: a factor for the channels of all layers.
        depth_multiplier: how many channels a depthwise convolution makes of each.
        dropout: the rate before the classifier.

    Shapes:
        images: (batch, height, width, 3) -> scores: (batch, classes); without the classifier
            features, (batch, height / 32, width / 32, channels)

    Source: Howard et al., "MobileNets", 2017, arXiv:1704.04861.

    Examples:
        >>> options = {"input_shape": (96, 96, 3), "classes": 10}
        >>> model = laminar.applications.MobileNet(weights=None, **options)
        >>> model.output_shape
        (None, 10)
    """
    size = _size(input_shape)
    stem = f"mobilenet_{_WIDTHS.get(alpha, '2_5')}_{size}_tf"
    options = Options(
        name or f"mobilenet_{alpha:0.2f}_{size}",
        include_top,
        weights,
        input_tensor,
        input_shape,
        pooling,
        classes,
        classifier_activation,
        Published(
            "tensorflow/keras-applications/mobilenet/",
            (f"{stem}.h5", None),
            (f"{stem}_no_top.h5", None),
        ),
    )
    image = options.begin(size)
    x = layers.Conv2D(int(32 * alpha), 3, strides=2, padding="same", use_bias=False, name="conv1")(
        image
    )
    x = _finished(x, "conv1")
    for i, (filters, stride) in enumerate(_BLOCKS, 1):
        x = _block(x, int(filters * alpha), depth_multiplier, stride, i)
    if not include_top:
        return options.complete(options.pooled(x, (None, None)), image)
    x = layers.GlobalAveragePooling2D(keepdims=True)(x)
    x = layers.Dropout(dropout, name="dropout")(x)
    x = layers.Conv2D(classes, 1, padding="same", name="conv_preds")(x)
    x = layers.Reshape((classes,), name="reshape_2")(x)
    x = layers.Activation(classifier_activation, name="predictions")(x)
    return options.complete(x, image)


def _size(input_shape: Any) -> int:
    """The size of images that the trained weights are for."""
    shape = input_shape
    if shape is None or len(shape) != 3 or shape[0] != shape[1] or shape[0] not in _SIZES:
        return 224
    return int(shape[0])


def _finished(x: Any, name: str) -> Any:
    return layers.ReLU(6.0, name=f"{name}_relu")(layers.BatchNormalization(name=f"{name}_bn")(x))


def _block(x: Any, filters: int, depth_multiplier: int, stride: int, number: int) -> Any:
    """A depthwise 3x3 convolution, then a 1x1 convolution."""
    if stride != 1:
        x = layers.ZeroPadding2D(((0, 1), (0, 1)), name=f"conv_pad_{number}")(x)
    x = layers.DepthwiseConv2D(
        3,
        strides=stride,
        padding="same" if stride == 1 else "valid",
        depth_multiplier=depth_multiplier,
        use_bias=False,
        name=f"conv_dw_{number}",
    )(x)
    x = _finished(x, f"conv_dw_{number}")
    x = layers.Conv2D(filters, 1, padding="same", use_bias=False, name=f"conv_pw_{number}")(x)
    return _finished(x, f"conv_pw_{number}")


def preprocess_input(x: Any, data_format: DataFormat | None = None) -> Any:
    """Pixels from 0 to 255 to the range from -1 to 1; see `imagenet_utils.preprocess_input`."""
    return imagenet_utils.preprocess_input(x, data_format, "tf")
