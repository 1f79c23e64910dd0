"""What the architectures have in common: the image that goes in, the classifier, the weights."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from laminar import activations, config, layers
from laminar.engine.errors import InvalidArgumentError, MissingFileError
from laminar.layers.symbolic import is_keras_tensor
from laminar.models import Model
from laminar.utils.files import get_file
from laminar.utils.source_inputs import get_source_inputs

_CLASSES = 1000  # of ImageNet
_ADDRESS = "https://storage.googleapis.com/"


@dataclass(frozen=True)
class Published:
    """Where Keras publishes the weights of an architecture.

    Args:
        folder: of the files, under the address of all.
        top: the name, and the MD5 or SHA-256 if it is known, of the file with the classifier.
        bare: the same of the file without it.
        origins: what the two files are called there, if not so.
    """

    folder: str
    top: tuple[str, str | None]
    bare: tuple[str, str | None]
    origins: tuple[str, str] | None = None

    def fetch(self, include_top: bool) -> Path:
        """The local copy: Keras's own if there is one, else it is downloaded.

        Raises:
            UnavailableError: it cannot be downloaded.
        """
        name, digest = self.top if include_top else self.bare
        kept = keras_folder() / "models" / name
        if kept.is_file():
            return kept
        published = name if self.origins is None else self.origins[0 if include_top else 1]
        origin = f"{_ADDRESS}{self.folder}{published}"
        return Path(get_file(name, origin, cache_subdir="models", file_hash=digest))


@dataclass(frozen=True)
class Options:
    """The arguments that all architectures take.

    Args:
        name: of the model.
        include_top: whether the classifier is part of it.
        weights: None for random ones, the path of a weights file in Keras's layout, or "imagenet"
            for those that Keras publishes.
        input_tensor: a symbolic tensor to begin from.
        input_shape: (height, width, channels) of the images.
        pooling: without the classifier, "avg" or "max" takes each channel's mean or maximum.
        classes: how many the classifier tells apart.
        classifier_activation: of the classifier; None gives logits.
        published: where Keras publishes trained weights.
    """

    name: str
    include_top: bool
    weights: Any
    input_tensor: Any
    input_shape: Any
    pooling: str | None
    classes: int
    classifier_activation: Any
    published: Published

    def begin(self, default_size: int, min_size: int = 32) -> Any:
        """The symbolic images.

        Raises:
            InvalidArgumentError: an argument that does not fit the others.
            MissingFileError: there is no weights file.
        """
        self._check()
        if self.input_tensor is not None:
            if not is_keras_tensor(self.input_tensor):
                raise InvalidArgumentError(
                    f"{self.name}: input_tensor must be symbolic, got {self.input_tensor!r:.100}",
                    remedy="make it with Input(shape=(224, 224, 3))",
                )
            return self.input_tensor
        return layers.Input(self._shape(default_size, min_size))

    def end(
        self,
        x: Any,
        image: Any,
        *,
        pool_names: tuple[str | None, str | None] = ("avg_pool", "max_pool"),
        top_pool_name: str | None = "avg_pool",
        dropout: float = 0.0,
        kernel_initializer: Any = "glorot_uniform",
    ) -> Model:
        """The model, from the features of its last convolution: pooling and classifier put on."""
        if self.include_top:
            x = layers.GlobalAveragePooling2D(name=top_pool_name)(x)
            if dropout > 0:
                x = layers.Dropout(dropout, name="top_dropout")(x)
            return self.complete(
                layers.Dense(
                    self.classes,
                    activation=self.classifier_activation,
                    kernel_initializer=kernel_initializer,
                    name="predictions",
                )(x),
                image,
            )
        return self.complete(self.pooled(x, pool_names), image)

    def pooled(self, x: Any, names: tuple[str | None, str | None]) -> Any:
        """The features after the pooling that was asked for."""
        if self.pooling == "avg":
            return layers.GlobalAveragePooling2D(name=names[0])(x)
        if self.pooling == "max":
            return layers.GlobalMaxPooling2D(name=names[1])(x)
        return x

    def complete(self, outputs: Any, image: Any) -> Model:
        """The model that computes `outputs`, with its weights loaded."""
        found = get_source_inputs(image)
        inputs = found[0] if len(found) == 1 else found
        model = Model(inputs=inputs, outputs=outputs, name=self.name)
        if self.weights is not None:
            is_published = self.weights == "imagenet"
            path = self.published.fetch(self.include_top) if is_published else self.weights
            model.load_weights(path)
        return model

    def _check(self) -> None:
        if config.image_data_format() != "channels_last":
            raise InvalidArgumentError(
                f"{self.name}: images are (height, width, channels), "
                f"the image data format is {config.image_data_format()!r}",
                remedy='config.set_image_data_format("channels_last")',
            )
        if self.pooling not in (None, "avg", "max"):
            raise InvalidArgumentError(
                f"{self.name}: pooling must be None, 'avg' or 'max', got {self.pooling!r}"
            )
        if self.weights is None:
            return
        if not isinstance(self.weights, str | os.PathLike):
            raise InvalidArgumentError(
                f"{self.name}: weights must be None, 'imagenet' or a path, "
                f"got {self.weights!r:.100}"
            )
        allowed = (activations.get(None), activations.get("softmax"))
        if self.include_top and activations.get(self.classifier_activation) not in allowed:
            raise InvalidArgumentError(
                f"{self.name}: with trained weights the classifier ends in softmax or in nothing, "
                f"got classifier_activation={self.classifier_activation!r}"
            )
        if self.weights == "imagenet":
            if self.include_top and self.classes != _CLASSES:
                raise InvalidArgumentError(
                    f"{self.name}: the weights of ImageNet are for {_CLASSES} classes, "
                    f"got classes={self.classes}",
                    remedy="include_top=False, and put a Dense layer of your own on top",
                )
        elif not Path(self.weights).is_file():
            raise MissingFileError(
                f"{self.name}: there is no weights file at {os.fspath(self.weights)!r}",
                remedy="check the path, or pass weights=None",
            )

    def _shape(self, default_size: int, min_size: int) -> tuple[Any, ...]:
        """The shape of one image."""
        default = (default_size, default_size, 3)
        if self.input_shape is None:
            return default if self.include_top else (None, None, 3)
        shape = tuple(self.input_shape)
        if len(shape) != 3:
            raise InvalidArgumentError(
                f"{self.name}: input_shape is (height, width, channels), got {shape}"
            )
        if any(side is not None and side < min_size for side in shape[:2]):
            raise InvalidArgumentError(
                f"{self.name}: images must be at least {min_size}x{min_size}, got {shape}"
            )
        if self.include_top and None in shape:
            raise InvalidArgumentError(
                f"{self.name}: with the classifier the image size must be known, got {shape}",
                remedy="give a full input_shape, or include_top=False",
            )
        if self.weights == "imagenet" and (
            shape[2] != 3 or (self.include_top and shape != default)
        ):
            raise InvalidArgumentError(
                f"{self.name}: the weights of ImageNet are for images of shape {default}, "
                f"got {shape}",
                remedy="leave input_shape out, or include_top=False",
            )
        return shape


class Architecture(Protocol):
    """A public function that makes a model; its arguments are those of `Options`."""

    def __call__(
        self,
        include_top: bool = True,
        weights: Any = "imagenet",
        input_tensor: Any = None,
        input_shape: Any = None,
        pooling: str | None = None,
        classes: int = 1000,
        classifier_activation: Any = "softmax",
        name: str = ...,
    ) -> Model: ...


def architecture(
    called: str,
    published: Published,
    build: Callable[[Options], Model],
    title: str,
    source: str,
    name: str | None = None,
) -> Architecture:
    """The public function that makes a network from all of `Options`.

    Args:
        called: its name.
        published: where Keras publishes trained weights.
        build: makes the model.
        title: the first line of its docstring.
        source: the paper.
        name: of the models that are given none; by default `called` in lower case.
    """
    default = name or called.lower()

    def make(
        include_top: bool = True,
        weights: Any = "imagenet",
        input_tensor: Any = None,
        input_shape: Any = None,
        pooling: str | None = None,
        classes: int = 1000,
        classifier_activation: Any = "softmax",
        name: str = default,
    ) -> Model:
        return build(
            Options(
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
        )

    make.__name__ = make.__qualname__ = called
    make.__module__ = build.__module__
    make.__doc__ = f"""{title}

    Args:
        include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation,
            name: see `common.Options`.

    Shapes:
        images: (batch, height, width, 3) -> scores: (batch, classes); without the classifier
            features, (batch, about height / 32, about width / 32, channels)

    Source: {source}

{example(called)}
    """
    return make


def example(called: str) -> str:
    """The last section of the docstring of a network."""
    return f"""    Examples:
        >>> options = {{"input_shape": (96, 96, 3), "classes": 10}}
        >>> model = laminar.applications.{called}(weights=None, **options)
        >>> model.output_shape
        (None, 10)"""


def keras_folder() -> Path:
    """The folder in which Keras keeps what it downloads: $KERAS_HOME, or ~/.keras."""
    return Path(os.environ.get("KERAS_HOME") or Path.home() / ".keras")


def pad_for_stride(x: Any, kernel_size: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The zeros around an image so that a convolution with stride 2 halves its size.

    As in TensorFlow's "same" padding, an even side gets one row less before it than after it.
    """
    half = kernel_size // 2
    before = [half - (1 if side is None else 1 - side % 2) for side in x.shape[1:3]]
    return (before[0], half), (before[1], half)


def round_channels(count: float) -> int:
    """`count` rounded to a multiple of 8, but not down by more than a tenth.

    Source: Howard et al., "MobileNets", 2017, arXiv:1704.04861, in the reference code.
    """
    rounded = max(8, int(count + 4) // 8 * 8)
    return rounded if rounded >= 0.9 * count else rounded + 8
