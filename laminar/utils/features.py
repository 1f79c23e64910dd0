"""What `FeatureSpace` says of a column of a table, and of columns that belong together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from laminar.engine.errors import InvalidArgumentError
from laminar.layers import (
    Discretization,
    Hashing,
    IntegerLookup,
    Layer,
    Normalization,
    Rescaling,
    StringLookup,
    TextVectorization,
)
from laminar.layers.identity import Identity
from laminar.serialization import deserialize_keras_object, serialize_keras_object

_MODES = ("float", "int", "one_hot")


class Feature:
    """One column: the type it comes in, the layer that prepares it, the form of the result.

    Args:
        dtype: "float32", "int32" or "string", ...
        preprocessor: a layer, or a function of the column.
        output_mode: "float", "int" for numbers of categories, or "one_hot".

    Raises:
        InvalidArgumentError: another output mode.
    """

    def __init__(self, dtype: str, preprocessor: Any, output_mode: str) -> None:
        if output_mode not in _MODES:
            raise InvalidArgumentError(
                f"FeatureSpace: output_mode must be one of {', '.join(map(repr, _MODES))}, "
                f"got {output_mode!r}"
            )
        self.dtype = dtype
        self.preprocessor = (
            deserialize_keras_object(preprocessor)
            if isinstance(preprocessor, dict)
            else preprocessor
        )
        self.output_mode = output_mode

    @property
    def cardinality(self) -> int:
        """How many categories there are.

        Raises:
            InvalidArgumentError: the preprocessor does not give categories.
        """
        layer = self.preprocessor
        if isinstance(layer, StringLookup | IntegerLookup | TextVectorization):
            return layer.vocabulary_size()
        if isinstance(layer, Hashing):
            return layer.num_bins
        if isinstance(layer, Discretization):
            return layer.num_bins or len(layer.bin_boundaries or ()) + 1
        raise InvalidArgumentError(
            f"FeatureSpace: how many categories {type(layer).__name__} gives is not known",
            remedy="use output_mode 'float' or 'int', or a lookup, hashing or discretization layer",
        )

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to make an equal one."""
        return {
            "dtype": self.dtype,
            "preprocessor": serialize_keras_object(self.preprocessor),
            "output_mode": self.output_mode,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Feature:
        """The feature that `get_config` described."""
        return cls(**config)


class Cross:
    """Columns whose combinations are categories, put into `crossing_dim` bins by their hash.

    Args:
        feature_names: of the columns.
        crossing_dim: the number of bins.
        output_mode: "one_hot", or "int".

    Raises:
        InvalidArgumentError: another output mode.
    """

    def __init__(
        self, feature_names: Sequence[str], crossing_dim: int, output_mode: str = "one_hot"
    ) -> None:
        if output_mode not in _MODES[1:]:
            raise InvalidArgumentError(
                f"FeatureSpace.cross: output_mode must be 'int' or 'one_hot', got {output_mode!r}"
            )
        self.feature_names = tuple(feature_names)
        self.crossing_dim = crossing_dim
        self.output_mode = output_mode

    @property
    def name(self) -> str:
        """The names of the columns, with "_X_" between them."""
        return "_X_".join(self.feature_names)

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to make an equal one."""
        return {
            "feature_names": list(self.feature_names),
            "crossing_dim": self.crossing_dim,
            "output_mode": self.output_mode,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Cross:
        """The cross that `get_config` described."""
        return cls(**config)


# The ways of preparing a column. They are offered as static methods of FeatureSpace.


def plain(name: str | None = None) -> Feature:
    """A number, as it is."""
    return Feature("float32", Identity(dtype="float32", name=name), "float")


def rescaled(scale: float = 1.0, offset: float = 0.0, name: str | None = None) -> Feature:
    """x * scale + offset."""
    return Feature("float32", Rescaling(scale, offset, name=name), "float")


def normalized(name: str | None = None) -> Feature:
    """(x - mean) / standard deviation, both measured by `adapt`."""
    return Feature("float32", Normalization(axis=-1, name=name), "float")


def discretized(
    num_bins: int | None,
    bin_boundaries: Sequence[float] | None = None,
    output_mode: str = "one_hot",
    name: str | None = None,
) -> Feature:
    """The bin that a number is in: `num_bins` of equal counts found by `adapt`, or given ones."""
    layer = Discretization(
        num_bins=None if bin_boundaries is not None else num_bins,
        bin_boundaries=None if bin_boundaries is None else list(bin_boundaries),
        name=name,
    )
    return Feature("float32", layer, output_mode)


def integer_categorical(
    max_tokens: int | None = None,
    num_oov_indices: int = 1,
    output_mode: str = "one_hot",
    name: str | None = None,
) -> Feature:
    """Whole numbers as categories: the most frequent `max_tokens` that `adapt` sees."""
    layer = IntegerLookup(max_tokens=max_tokens, num_oov_indices=num_oov_indices, name=name)
    return Feature("int32", layer, output_mode)


def string_categorical(
    max_tokens: int | None = None,
    num_oov_indices: int = 1,
    output_mode: str = "one_hot",
    name: str | None = None,
) -> Feature:
    """Texts as categories: the most frequent `max_tokens` that `adapt` sees."""
    layer = StringLookup(max_tokens=max_tokens, num_oov_indices=num_oov_indices, name=name)
    return Feature("string", layer, output_mode)


def integer_hashed(num_bins: int, output_mode: str = "one_hot", name: str | None = None) -> Feature:
    """Whole numbers as categories, by their hash."""
    return Feature("int32", Hashing(num_bins=num_bins, name=name), output_mode)


def string_hashed(num_bins: int, output_mode: str = "one_hot", name: str | None = None) -> Feature:
    """Texts as categories, by their hash."""
    return Feature("string", Hashing(num_bins=num_bins, name=name), output_mode)


def by_name(kind: Any, hashing_dim: int, num_discretization_bins: int) -> Feature:
    """The feature that a name such as "float_normalized" stands for; a feature itself.

    Raises:
        InvalidArgumentError: the name is not known.
    """
    makers: dict[str, Callable[[], Feature]] = {
        "float": plain,
        "float_rescaled": rescaled,
        "float_normalized": normalized,
        "float_discretized": lambda: discretized(num_discretization_bins),
        "integer_categorical": integer_categorical,
        "integer_hashed": lambda: integer_hashed(hashing_dim),
        "string_categorical": string_categorical,
        "string_hashed": lambda: string_hashed(hashing_dim),
    }
    if isinstance(kind, dict):
        kind = deserialize_keras_object(kind)
    if isinstance(kind, Feature):
        return kind
    if not isinstance(kind, str) or kind not in makers:
        raise InvalidArgumentError(
            f"FeatureSpace: expected a feature or one of {', '.join(makers)}, got {kind!r}",
            remedy="write FeatureSpace.feature(dtype, preprocessor, output_mode) for another one",
        )
    return makers[kind]()


def is_adaptable(feature: Feature) -> bool:
    """Whether the preprocessor learns from data, and was not given what it would learn."""
    layer = feature.preprocessor
    if isinstance(layer, Normalization):
        return layer.input_mean is None
    if isinstance(layer, Discretization):
        return layer.num_bins is not None
    if isinstance(layer, IntegerLookup | StringLookup):
        return layer.input_vocabulary is None
    return isinstance(layer, Layer) and hasattr(layer, "adapt")
