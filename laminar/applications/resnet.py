"""ResNet: blocks of three convolutions, added to what goes in."""

from __future__ import annotations

from typing import Any

from laminar import layers
from laminar.models import Model

from ..typing import DataFormat
from . import imagenet_utils
from .common import Architecture, Options, Published, architecture
from .imagenet_utils import decode_predictions as decode_predictions

_EPSILON = 1.001e-5
# Blocks in each of the four stages.
BLOCKS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
_DIGESTS = {
    50: ("2cb95161c43110f7111970584f804107", "4d473c1dd8becc155b73f8504c6f6626"),
    101: ("f1aeb4b969a6efcfb50fad2f0c20cfc5", "88cf7a10940856eca736dc7b7e228a21"),
    152: ("100835be76be38e30d865e96f2aaae62", "ee4c566cf9a93f14d82f913c2dc6dd0c"),
}


def published(name: str, digests: tuple[str, str]) -> Published:
    """Where the weights of a ResNet are."""
    stem = f"{name}_weights_tf_dim_ordering_tf_kernels"
    return Published(
        "tensorflow/keras-applications/resnet/",
        (f"{stem}.h5", digests[0]),
        (f"{stem}_notop.h5", digests[1]),
    )


def stem(image: Any) -> Any:
    """The first convolution, padded by hand as the weights want it."""
    x = layers.ZeroPadding2D(3, name="conv1_pad")(image)
    return layers.Conv2D(64, 7, strides=2, name="conv1_conv")(x)


def first_pooling(x: Any) -> Any:
    """The pooling before the first stage."""
    x = layers.ZeroPadding2D(1, name="pool1_pad")(x)
    return layers.MaxPooling2D(3, strides=2, name="pool1_pool")(x)


def normalized(x: Any, name: str) -> Any:
    """Batch normalization with the epsilon of these models."""
    return layers.BatchNormalization(epsilon=_EPSILON, name=name)(x)


def _resnet(options: Options, depth: int) -> Model:
    image = options.begin(224)
    x = normalized(stem(image), "conv1_bn")
    x = layers.Activation("relu", name="conv1_relu")(x)
    x = first_pooling(x)
    for stage, count in enumerate(BLOCKS[depth]):
        for i in range(1, count + 1):
            stride = 2 if i == 1 and stage > 0 else 1
            x = _block(x, 64 << stage, stride, i == 1, f"conv{stage + 2}_block{i}")
    return options.end(x, image)


def _block(x: Any, filters: int, stride: int, is_first: bool, name: str) -> Any:
    """1x1, 3x3 and 1x1 convolutions; the first block of a stage projects what it adds."""
    shortcut = x
    if is_first:
        shortcut = layers.Conv2D(4 * filters, 1, strides=stride, name=f"{name}_0_conv")(x)
        shortcut = normalized(shortcut, f"{name}_0_bn")
    x = layers.Conv2D(filters, 1, strides=stride, name=f"{name}_1_conv")(x)
    x = layers.Activation("relu", name=f"{name}_1_relu")(normalized(x, f"{name}_1_bn"))
    x = layers.Conv2D(filters, 3, padding="same", name=f"{name}_2_conv")(x)
    x = layers.Activation("relu", name=f"{name}_2_relu")(normalized(x, f"{name}_2_bn"))
    x = normalized(layers.Conv2D(4 * filters, 1, name=f"{name}_3_conv")(x), f"{name}_3_bn")
    x = layers.Add(name=f"{name}_add")([shortcut, x])
    return layers.Activation("relu", name=f"{name}_out")(x)


def _deep(depth: int) -> Architecture:
    """The network with so many layers."""

    def build(options: Options) -> Model:
        return _resnet(options, depth)

    return architecture(
        f"ResNet{depth}",
        published(f"resnet{depth}", _DIGESTS[depth]),
        build,
        f"ResNet with {depth} layers.",
        'He et al., "Deep residual learning", 2016, arXiv:1512.03385.',
    )


ResNet50 = _deep(50)
ResNet101 = _deep(101)
ResNet152 = _deep(152)


def preprocess_input(x: Any, data_format: DataFormat | None = None) -> Any:
    """BGR, less the mean of each colour; see `imagenet_utils.preprocess_input`."""
    return imagenet_utils.preprocess_input(x, data_format, "caffe")
