"""VGG: plain stacks of 3x3 convolutions."""

from __future__ import annotations

from typing import Any

from laminar import layers
from laminar.models import Model

from ..typing import DataFormat
from . import imagenet_utils
from .common import Options, Published, architecture
from .imagenet_utils import decode_predictions as decode_predictions

_FILTERS = (64, 128, 256, 512, 512)

_PUBLISHED = Published(
    "tensorflow/keras-applications/vgg16/",
    ("vgg16_weights_tf_dim_ordering_tf_kernels.h5", "64373286793e3c8b2b4e3219cbf3544b"),
    ("vgg16_weights_tf_dim_ordering_tf_kernels_notop.h5", "6d6bbae143d832006294945121d1f1fc"),
)


def _vgg16(options: Options) -> Model:
    return vgg(options, (2, 2, 3, 3, 3))


def vgg(options: Options, convolutions: tuple[int, ...]) -> Model:
    """Blocks of 3x3 convolutions, each block followed by pooling; then three dense layers."""
    image = x = options.begin(224)
    for block, (filters, count) in enumerate(zip(_FILTERS, convolutions, strict=True), 1):
        for i in range(1, count + 1):
            x = layers.Conv2D(
                filters, 3, padding="same", activation="relu", name=f"block{block}_conv{i}"
            )(x)
        x = layers.MaxPooling2D(2, strides=2, name=f"block{block}_pool")(x)
    if not options.include_top:
        return options.complete(options.pooled(x, (None, None)), image)
    x = layers.Flatten(name="flatten")(x)
    x = layers.Dense(4096, activation="relu", name="fc1")(x)
    x = layers.Dense(4096, activation="relu", name="fc2")(x)
    x = layers.Dense(options.classes, activation=options.classifier_activation, name="predictions")(
        x
    )
    return options.complete(x, image)


VGG16 = architecture(
    "VGG16",
    _PUBLISHED,
    _vgg16,
    "VGG with 16 layers.",
    'Simonyan and Zisserman, "Very deep convolutional networks", 2015, arXiv:1409.1556.',
)


def preprocess_input(x: Any, data_format: DataFormat | None = None) -> Any:
    """BGR, less the mean of each colour; see `imagenet_utils.preprocess_input`."""
    return imagenet_utils.preprocess_input(x, data_format, "caffe")
