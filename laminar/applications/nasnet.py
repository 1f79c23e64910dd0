"""NASNet-A: two kinds of cells, found by search, put on each other."""

from __future__ import annotations

from typing import Any, NamedTuple

from laminar import layers
from laminar.models import Model

from ..typing import DataFormat
from . import imagenet_utils
from .common import Options, Published, pad_for_stride
from .imagenet_utils import decode_predictions as decode_predictions

_FOLDER = "tensorflow/keras-applications/nasnet/"


class _Network(NamedTuple):
    """What a network is made of.

    Args:
        filters: channels of a branch of the first cells that keep the size.
        repeats: cells that keep the size, between two that halve it.
        stem: channels of the first convolution.
        size: of the images.
        skips: whether the cell after one that halves gets what that one got before, rather than
            what it got.
        published: where Keras publishes trained weights.
    """

    filters: int
    repeats: int
    stem: int
    size: int
    skips: bool
    published: Published


_MOBILE = _Network(
    44,
    4,
    32,
    224,
    False,
    Published(
        _FOLDER,
        ("nasnet_mobile.h5", "020fb642bf7360b370c678b08e0adf61"),
        ("nasnet_mobile_no_top.h5", "1ed92395b5b598bdda52abe5c0dbfd63"),
        ("NASNet-mobile.h5", "NASNet-mobile-no-top.h5"),
    ),
)
_LARGE = _Network(
    168,
    6,
    96,
    331,
    True,
    Published(
        _FOLDER,
        ("nasnet_large.h5", "11577c9a518f0070763c2b964a382f17"),
        ("nasnet_large_no_top.h5", "d81d89dc07e6e56530c4e77faddd61b5"),
        ("NASNet-large.h5", "NASNet-large-no-top.h5"),
    ),
)


def _nasnet(options: Options, network: _Network) -> Model:
    image = options.begin(network.size)
    filters, repeats = network.filters, network.repeats
    x = layers.Conv2D(
        network.stem,
        3,
        strides=2,
        use_bias=False,
        kernel_initializer="he_normal",
        name="stem_conv1",
    )(image)
    x = _normalized(x, "stem_bn1")
    # A cell gets what the one before it gives, and what that one got.
    x, before = _halving_cell(x, None, filters // 4, "stem_1"), x
    x, before = _halving_cell(x, before, filters // 2, "stem_2"), x
    for stage in range(3):
        if stage:
            halved = _halving_cell(x, before, filters, f"reduce_{stage * repeats}")
            x, before = halved, before if network.skips else x
        first = stage * repeats + min(stage, 1)
        for number in range(first, first + repeats):
            x, before = _cell(x, before, filters, str(number)), x
        filters *= 2
    x = layers.Activation("relu")(x)
    return options.end(x, image, pool_names=(None, None), top_pool_name=None)


def _normalized(x: Any, name: str) -> Any:
    return layers.BatchNormalization(momentum=0.9997, epsilon=1e-3, name=name)(x)


def _projected(x: Any, filters: int, name: str) -> Any:
    """A 1x1 convolution."""
    return layers.Conv2D(
        filters,
        1,
        padding="same",
        use_bias=False,
        kernel_initializer="he_normal",
        name=name,
    )(x)


def _separable(x: Any, filters: int, size: int, name: str, stride: int = 1) -> Any:
    """Twice: relu, a separable convolution, normalization."""
    x = layers.Activation("relu")(x)
    if stride == 2:
        x = layers.ZeroPadding2D(pad_for_stride(x, size), name=f"separable_conv_1_pad_{name}")(x)
    for i in (1, 2):
        if i == 2:
            x = layers.Activation("relu")(x)
        halves = i == 1 and stride == 2
        x = layers.SeparableConv2D(
            filters,
            size,
            strides=stride if i == 1 else 1,
            padding="valid" if halves else "same",
            use_bias=False,
            name=f"separable_conv_{i}_{name}",
        )(x)
        x = _normalized(x, f"separable_conv_{i}_bn_{name}")
    return x


def _adjusted(before: Any, x: Any, filters: int, name: str) -> Any:
    """`before` in the size of `x`, and with `filters` channels."""
    if before is None:
        return x
    if before.shape[2] != x.shape[2]:
        before = layers.Activation("relu", name=f"adjust_relu_1_{name}")(before)
        # Every second pixel, and every second one of the image moved by one.
        moved = layers.ZeroPadding2D(((0, 1), (0, 1)))(before)
        moved = layers.Cropping2D(((1, 0), (1, 0)))(moved)
        parts = []
        for i, part in enumerate((before, moved), 1):
            picked = layers.AveragePooling2D(1, strides=2, name=f"adjust_avg_pool_{i}_{name}")(part)
            parts.append(_projected(picked, filters // 2, f"adjust_conv_{i}_{name}"))
        return _normalized(layers.Concatenate()(parts), f"adjust_bn_{name}")
    if before.shape[3] != filters:
        before = layers.Activation("relu")(before)
        before = _projected(before, filters, f"adjust_conv_projection_{name}")
        return _normalized(before, f"adjust_bn_{name}")
    return before


def _begun(x: Any, filters: int, kind: str, name: str) -> Any:
    x = layers.Activation("relu")(x)
    return _normalized(_projected(x, filters, f"{kind}_conv_1_{name}"), f"{kind}_bn_1_{name}")


def _averaged(x: Any, name: str) -> Any:
    return layers.AveragePooling2D(3, strides=1, padding="same", name=name)(x)


def _cell(x: Any, before: Any, filters: int, name: str) -> Any:
    """The paper's figure 4, left: the size stays."""
    p = _adjusted(before, x, filters, name)
    h = _begun(x, filters, "normal", name)
    parts = [p]
    for i, (left, right) in enumerate((((h, 5), (p, 3)), ((p, 5), (p, 3))), 1):
        pair = [
            _separable(*_with_size(left, filters), f"normal_left{i}_{name}"),
            _separable(*_with_size(right, filters), f"normal_right{i}_{name}"),
        ]
        parts.append(layers.Add(name=f"normal_add_{i}_{name}")(pair))
    third = [_averaged(h, f"normal_left3_{name}"), p]
    parts.append(layers.Add(name=f"normal_add_3_{name}")(third))
    fourth = [_averaged(p, f"normal_{side}4_{name}") for side in ("left", "right")]
    parts.append(layers.Add(name=f"normal_add_4_{name}")(fourth))
    fifth = [_separable(h, filters, 3, f"normal_left5_{name}"), h]
    parts.append(layers.Add(name=f"normal_add_5_{name}")(fifth))
    return layers.Concatenate(name=f"normal_concat_{name}")(parts)


def _with_size(branch: tuple[Any, int], filters: int) -> tuple[Any, int, int]:
    x, size = branch
    return x, filters, size


def _halving_cell(x: Any, before: Any, filters: int, name: str) -> Any:
    """The paper's figure 4, right: the size is halved."""
    p = _adjusted(before, x, filters, name)
    h = _begun(x, filters, "reduction", name)
    padded = layers.ZeroPadding2D(pad_for_stride(h, 3), name=f"reduction_pad_1_{name}")(h)

    def added(left: Any, right: Any, called: str | None) -> Any:
        return layers.Add(name=called and f"reduction_{called}_{name}")([left, right])

    left = _separable(h, filters, 5, f"reduction_left1_{name}", 2)
    x1 = added(left, _separable(p, filters, 7, f"reduction_right1_{name}", 2), "add_1")
    left = layers.MaxPooling2D(3, strides=2, name=f"reduction_left2_{name}")(padded)
    x2 = added(left, _separable(p, filters, 7, f"reduction_right2_{name}", 2), "add_2")
    left = layers.AveragePooling2D(3, strides=2, name=f"reduction_left3_{name}")(padded)
    x3 = added(left, _separable(p, filters, 5, f"reduction_right3_{name}", 2), "add3")
    x4 = added(x2, _averaged(x1, f"reduction_left4_{name}"), None)
    left = _separable(x1, filters, 3, f"reduction_left4_{name}")
    right = layers.MaxPooling2D(3, strides=2, name=f"reduction_right5_{name}")(padded)
    x5 = added(left, right, "add4")
    return layers.Concatenate(name=f"reduction_concat_{name}")([x2, x3, x4, x5])


def NASNetMobile(  # noqa: N802  # Keras's name
    input_shape: Any = None,
    include_top: bool = True,
    weights: Any = "imagenet",
    input_tensor: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Any = "softmax",
    name: str = "nasnet_mobile",
) -> Model:
    """NASNet-A of 4 cells to a stage and 1056 channels; see `NASNetLarge`.

    Examples:
        >>> options = {"input_shape": (96, 96, 3), "classes": 10}
        >>> model = laminar.applications.NASNetMobile(weights=None, **options)
        >>> model.output_shape
        (None, 10)
    """
    if input_shape is None and not include_top:
        input_shape = (_MOBILE.size, _MOBILE.size, 3)
    options = Options(
        name,
        include_top,
        weights,
        input_tensor,
        input_shape,
        pooling,
        classes,
        classifier_activation,
        _MOBILE.published,
    )
    return _nasnet(options, _MOBILE)


def NASNetLarge(  # noqa: N802  # Keras's name
    input_shape: Any = None,
    include_top: bool = True,
    weights: Any = "imagenet",
    input_tensor: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Any = "softmax",
    name: str = "nasnet_large",
) -> Model:
    """NASNet-A of 6 cells to a stage and 4032 channels.

    Args:
        input_shape, include_top, weights, input_tensor, pooling, classes, classifier_activation,
            name: see `common.Options`.

    Shapes:
        images: (batch, height, width, 3) -> scores: (batch, classes); without the classifier
            features, (batch, about height / 32, about width / 32, channels)

    Source: Zoph et al., "Learning transferable architectures for scalable image recognition",
        2017, arXiv:1707.07012.

    Examples:
        >>> options = {"input_shape": (96, 96, 3), "classes": 10}
        >>> model = laminar.applications.NASNetLarge(weights=None, **options)
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
        _LARGE.published,
    )
    return _nasnet(options, _LARGE)


def preprocess_input(x: Any, data_format: DataFormat | None = None) -> Any:
    """Pixels from 0 to 255 to the range from -1 to 1; see `imagenet_utils.preprocess_input`."""
    return imagenet_utils.preprocess_input(x, data_format, "tf")
