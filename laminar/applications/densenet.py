"""DenseNet: each layer takes the results of all before it."""

from __future__ import annotations

from typing import Any

from laminar import layers
from laminar.models import Model

from ..typing import DataFormat
from . import imagenet_utils
from .common import Architecture, Options, Published, architecture
from .imagenet_utils import decode_predictions as decode_predictions
from .resnet import normalized

_GROWTH = 32  # channels that a layer adds
_BLOCKS = {121: (6, 12, 24, 16), 169: (6, 12, 32, 32), 201: (6, 12, 48, 32)}
_DIGESTS = {
    121: ("9d60b8095a5708f2dcce2bca79d332c7", "30ee3e1110167f948a6b9946edeeb738"),
    169: ("d699b8f76981ab1b30698df4c175e90b", "b8c4d4c20dd625c148057b9ff1c1176b"),
    201: ("1ceb130c1ea1b78c3bf6114dbdfd8807", "c13680b51ded0fb44dff2d8f86ac8bb1"),
}


def _published(depth: int) -> Published:
    stem = f"densenet{depth}_weights_tf_dim_ordering_tf_kernels"
    top, bare = _DIGESTS[depth]
    folder = "tensorflow/keras-applications/densenet/"
    return Published(folder, (f"{stem}.h5", top), (f"{stem}_notop.h5", bare))


def _densenet(options: Options, depth: int) -> Model:
    image = options.begin(224)
    x = layers.ZeroPadding2D(3)(image)
    x = layers.Conv2D(64, 7, strides=2, use_bias=False, name="conv1_conv")(x)
    x = layers.Activation("relu", name="conv1_relu")(normalized(x, "conv1_bn"))
    x = layers.ZeroPadding2D(1)(x)
    x = layers.MaxPooling2D(3, strides=2, name="pool1")(x)
    for stage, count in enumerate(_BLOCKS[depth], 2):
        for i in range(1, count + 1):
            x = _layer(x, f"conv{stage}_block{i}")
        if stage < 5:
            x = _transition(x, f"pool{stage}")
    x = layers.Activation("relu", name="relu")(normalized(x, "bn"))
    return options.end(x, image)


def _layer(x: Any, name: str) -> Any:
    """A 1x1 and a 3x3 convolution, whose result is put beside what goes in."""
    y = layers.Activation("relu", name=f"{name}_0_relu")(normalized(x, f"{name}_0_bn"))
    y = layers.Conv2D(4 * _GROWTH, 1, use_bias=False, name=f"{name}_1_conv")(y)
    y = layers.Activation("relu", name=f"{name}_1_relu")(normalized(y, f"{name}_1_bn"))
    y = layers.Conv2D(_GROWTH, 3, padding="same", use_bias=False, name=f"{name}_2_conv")(y)
    return layers.Concatenate(name=f"{name}_concat")([x, y])


def _transition(x: Any, name: str) -> Any:
    """Half of the channels, and half of the size."""
    x = layers.Activation("relu", name=f"{name}_relu")(normalized(x, f"{name}_bn"))
    x = layers.Conv2D(x.shape[-1] // 2, 1, use_bias=False, name=f"{name}_conv")(x)
    return layers.AveragePooling2D(2, strides=2, name=f"{name}_pool")(x)


def _deep(depth: int) -> Architecture:
    """The network with so many layers."""

    def build(options: Options) -> Model:
        return _densenet(options, depth)

    return architecture(
        f"DenseNet{depth}",
        _published(depth),
        build,
        f"DenseNet with {depth} layers.",
        'Huang et al., "Densely connected convolutional networks", 2017, arXiv:1608.06993.',
    )


DenseNet121 = _deep(121)
DenseNet169 = _deep(169)
DenseNet201 = _deep(201)


def preprocess_input(x: Any, data_format: DataFormat | None = None) -> Any:
    """Each colour less its mean, over its deviation; see `imagenet_utils.preprocess_input`."""
    return imagenet_utils.preprocess_input(x, data_format, "torch")
