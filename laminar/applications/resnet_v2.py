"""ResNet, second version: normalization and activation stand before the convolutions."""

from __future__ import annotations

from typing import Any

from laminar import layers
from laminar.models import Model

from ..typing import DataFormat
from . import imagenet_utils
from .common import Architecture, Options, architecture
from .imagenet_utils import decode_predictions as decode_predictions
from .resnet import BLOCKS, first_pooling, normalized, published, stem

_DIGESTS = {
    50: ("3ef43a0b657b3be2300d5770ece849e0", "fac2f116257151a9d068a22e544a4917"),
    101: ("6343647c601c52e1368623803854d971", "c0ed64b8031c3730f411d2eb4eea35b5"),
    152: ("a49b44d1979771252814e80f8ec446f9", "ed17cf2e0169df9d443503ef94b23b33"),
}


def _resnet(options: Options, depth: int) -> Model:
    image = options.begin(224)
    x = first_pooling(stem(image))
    for stage, count in enumerate(BLOCKS[depth]):
        for i in range(1, count + 1):
            # A stage halves the image at its end; the last does not.
            stride = 2 if i == count and stage < 3 else 1
            x = _block(x, 64 << stage, stride, i == 1, f"conv{stage + 2}_block{i}")
    x = layers.Activation("relu", name="post_relu")(normalized(x, "post_bn"))
    return options.end(x, image)


def _block(x: Any, filters: int, stride: int, is_first: bool, name: str) -> Any:
    """1x1, 3x3 and 1x1 convolutions of the normalized input, added to the input."""
    ready = normalized(x, f"{name}_preact_bn")
    ready = layers.Activation("relu", name=f"{name}_preact_relu")(ready)
    if is_first:
        shortcut = layers.Conv2D(4 * filters, 1, strides=stride, name=f"{name}_0_conv")(ready)
    else:
        shortcut = layers.MaxPooling2D(1, strides=stride)(x) if stride > 1 else x
    y = layers.Conv2D(filters, 1, use_bias=False, name=f"{name}_1_conv")(ready)
    y = layers.Activation("relu", name=f"{name}_1_relu")(normalized(y, f"{name}_1_bn"))
    y = layers.ZeroPadding2D(1, name=f"{name}_2_pad")(y)
    y = layers.Conv2D(filters, 3, strides=stride, use_bias=False, name=f"{name}_2_conv")(y)
    y = layers.Activation("relu", name=f"{name}_2_relu")(normalized(y, f"{name}_2_bn"))
    y = layers.Conv2D(4 * filters, 1, name=f"{name}_3_conv")(y)
    return layers.Add(name=f"{name}_out")([shortcut, y])


def _deep(depth: int) -> Architecture:
    """The network with so many layers."""

    def build(options: Options) -> Model:
        return _resnet(options, depth)

    return architecture(
        f"ResNet{depth}V2",
        published(f"resnet{depth}v2", _DIGESTS[depth]),
        build,
        f"ResNet, second version, with {depth} layers.",
        'He et al., "Identity mappings in deep residual networks", 2016, arXiv:1603.05027.',
    )


ResNet50V2 = _deep(50)
ResNet101V2 = _deep(101)
ResNet152V2 = _deep(152)


def preprocess_input(x: Any, data_format: DataFormat | None = None) -> Any:
    """Pixels from 0 to 255 to the range from -1 to 1; see `imagenet_utils.preprocess_input`."""
    return imagenet_utils.preprocess_input(x, data_format, "tf")
