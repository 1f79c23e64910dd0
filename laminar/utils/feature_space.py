"""FeatureSpace: the columns of a table, of many kinds, as input of a model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from laminar import ops
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from laminar.layers import CategoryEncoding, Concatenate, HashedCrossing, Input, Layer
from laminar.registration import list_builtins
from laminar.serialization import deserialize_keras_object, serialize_keras_object

from . import features as kinds
from .features import Cross, Feature


class FeatureSpace(Layer):
    """Prepares the columns of a table, one by one, and joins them.

        space = FeatureSpace(
            {"age": "float_normalized", "job": FeatureSpace.string_categorical()},
            crosses=[("age_group", "job")],
        )
        space.adapt({"age": ages, "job": jobs})
        model = Model(space.get_inputs(), Dense(1)(space.get_encoded_features()))

    Called on a dict of columns, of one row or of a batch, it gives them prepared.

    Args:
        features: for each column by name what it is: a `Feature` made by one of the static methods
            here, or the name of such a method, which stands for its defaults.
        output_mode: "concat" for one vector a row, or "dict" for each column by itself.
        crosses: tuples of column names whose combinations are features too, or `cross(...)`.
        crossing_dim: the number of bins of a cross given as a tuple.
        hashing_dim: the number of bins of a feature given as "..._hashed".
        num_discretization_bins: that of one given as "float_discretized".
        name: of the layer.

    Raises:
        InvalidArgumentError: there are no features, a feature or mode is not known, a cross names a
            column that is none, or "int" features are to be joined.

    Examples:
        >>> space = laminar.utils.FeatureSpace(
        ...     {"age": laminar.utils.FeatureSpace.float(), "city": "string_categorical"}
        ... )
        >>> rows = {"age": [30.0, 40.0], "city": ["Rome", "Oslo"]}
        >>> space.adapt(laminar.datasets.Dataset.from_tensor_slices(rows))
        >>> space(rows).shape
        (2, 4)
    """

    feature: ClassVar = staticmethod(Feature)
    cross: ClassVar = staticmethod(Cross)
    float: ClassVar = staticmethod(kinds.plain)
    float_rescaled: ClassVar = staticmethod(kinds.rescaled)
    float_normalized: ClassVar = staticmethod(kinds.normalized)
    float_discretized: ClassVar = staticmethod(kinds.discretized)
    integer_categorical: ClassVar = staticmethod(kinds.integer_categorical)
    integer_hashed: ClassVar = staticmethod(kinds.integer_hashed)
    string_categorical: ClassVar = staticmethod(kinds.string_categorical)
    string_hashed: ClassVar = staticmethod(kinds.string_hashed)

    def __init__(
        self,
        features: Mapping[str, Any],
        output_mode: str = "concat",
        crosses: Sequence[Any] | None = None,
        crossing_dim: int = 32,
        hashing_dim: int = 32,
        num_discretization_bins: int = 32,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        if not features:
            raise InvalidArgumentError("FeatureSpace: expected features by name, got none")
        if output_mode not in ("concat", "dict"):
            raise InvalidArgumentError(
                f"FeatureSpace: output_mode must be 'concat' or 'dict', got {output_mode!r}"
            )
        self.crossing_dim = crossing_dim
        self.hashing_dim = hashing_dim
        self.num_discretization_bins = num_discretization_bins
        self.output_mode = output_mode
        self.features = {
            key: kinds.by_name(kind, hashing_dim, num_discretization_bins)
            for key, kind in features.items()
        }
        self.crosses = [self._as_cross(cross) for cross in crosses or ()]
        if output_mode == "concat":
            self._refuse_numbers_of_categories()
        self.preprocessors = {key: f.preprocessor for key, f in self.features.items()}
        self.crossers = {
            cross.name: HashedCrossing(cross.crossing_dim, name=cross.name)
            for cross in self.crosses
        }
        self._adapted = not any(map(kinds.is_adaptable, self.features.values()))
        self.built = self._adapted
        self._encoders: dict[str, CategoryEncoding] = {}
        self._inputs: dict[str, Any] | None = None
        self._encoded: Any = None

    # Learning from data

    def adapt(self, dataset: Any) -> None:
        """Let the preprocessors learn from a table: means, boundaries, vocabularies.

        Args:
            dataset: a dict of columns, or an iterable of such dicts, with rows or batches.

        Raises:
            InvalidArgumentError: an element is no dict, or lacks a column.
        """
        columns: dict[str, list[Any]] = {
            key: [] for key, feature in self.features.items() if kinds.is_adaptable(feature)
        }
        for rows in [dataset] if isinstance(dataset, Mapping) else dataset:
            self._check(rows, "adapt")
            for key, parts in columns.items():
                parts.append(np.asarray(rows[key]).reshape(-1, 1))
        for key, parts in columns.items():
            if not parts:
                raise InvalidArgumentError("FeatureSpace.adapt: the dataset has no elements")
            self.preprocessors[key].adapt(np.concatenate(parts))
        self._adapted = self.built = True
        self._encoders, self._inputs, self._encoded = {}, None, None

    # Preparing data

    def __call__(self, data: Any) -> Any:
        """The columns prepared: a vector for each row, or a dict.

        Raises:
            FailedPreconditionError: `adapt` has not been called.
            InvalidArgumentError: a column is missing.
        """
        self._check(data, "call")
        tensors = {key: ops.convert_to_tensor(data[key]) for key in self.features}
        is_row = all(len(x.shape) == 0 for x in tensors.values())
        columns = {key: ops.reshape(x, (-1, 1)) for key, x in tensors.items() if _is_column(x)}
        result = self._encode({**tensors, **columns})
        if not is_row:
            return result
        if isinstance(result, dict):
            return {key: ops.squeeze(x, 0) for key, x in result.items()}
        return ops.squeeze(result, 0)

    def get_inputs(self) -> dict[str, Any]:
        """A symbolic input for each column, by name: for a model that takes the table itself."""
        self._make_symbols()
        assert self._inputs is not None
        return self._inputs

    def get_encoded_features(self) -> Any:
        """What comes of these inputs: for a model that takes the table itself."""
        self._make_symbols()
        return self._encoded

    def _make_symbols(self) -> None:
        if self._inputs is None:
            self._inputs = {
                key: Input((1,), dtype=feature.dtype, name=key)
                for key, feature in self.features.items()
            }
            self._encoded = self._encode(self._inputs)

    def _encode(self, columns: dict[str, Any]) -> Any:
        if not self._adapted:
            raise FailedPreconditionError(
                "FeatureSpace: some of its features have yet to learn from data",
                remedy="call adapt(dataset) with a dict of columns, or with a dataset of such",
            )
        prepared = {key: self.preprocessors[key](x) for key, x in columns.items()}
        crossed = {
            cross.name: self.crossers[cross.name](
                tuple(prepared[column] for column in cross.feature_names)
            )
            for cross in self.crosses
        }
        found: dict[str, Any] = {}
        for key, feature in self.features.items():
            size = feature.cardinality if feature.output_mode == "one_hot" else 0
            found[key] = self._in_form(key, prepared[key], feature.output_mode, size)
        for cross in self.crosses:
            size = cross.crossing_dim
            found[cross.name] = self._in_form(
                cross.name, crossed[cross.name], cross.output_mode, size
            )
        if self.output_mode == "dict":
            return found
        return Concatenate(axis=-1)(list(found.values())) if len(found) > 1 else found.popitem()[1]

    def _in_form(self, key: str, x: Any, mode: str, size: int) -> Any:
        if mode == "one_hot":
            if key not in self._encoders:
                self._encoders[key] = CategoryEncoding(size, "one_hot", dtype="float32")
            return self._encoders[key](x)
        return ops.cast(x, "float32") if mode == "float" else x

    def _check(self, data: Any, who: str) -> None:
        if not isinstance(data, Mapping):
            raise InvalidArgumentError(
                f"FeatureSpace.{who}: expected a dict of columns, got a {type(data).__name__}",
                remedy="drop the labels first: dataset.map(lambda x, y: x)",
            )
        missing = [key for key in self.features if key not in data]
        if missing:
            raise InvalidArgumentError(
                f"FeatureSpace.{who}: the data has no column {missing[0]!r}; "
                f"it has {', '.join(map(repr, data))}"
            )

    def _as_cross(self, cross: Any) -> Cross:
        if isinstance(cross, dict):
            cross = deserialize_keras_object(cross)
        made = cross if isinstance(cross, Cross) else Cross(cross, self.crossing_dim)
        for column in made.feature_names:
            if column not in self.features:
                raise InvalidArgumentError(
                    f"FeatureSpace: the cross {made.feature_names} names {column!r}, "
                    "which is no feature",
                    remedy="cross names of `features`",
                )
        return made

    def _refuse_numbers_of_categories(self) -> None:
        modes = {key: feature.output_mode for key, feature in self.features.items()}
        for key, mode in (modes | {c.name: c.output_mode for c in self.crosses}).items():
            if mode == "int":
                raise InvalidArgumentError(
                    f"FeatureSpace: {key!r} gives numbers of categories (output_mode 'int'), "
                    "which cannot be joined with other features",
                    remedy="use FeatureSpace(..., output_mode='dict')",
                )

    # Files

    def save(self, filepath: str | os.PathLike[str]) -> None:
        """Write it to a `.keras` file, which `load_model` reads."""
        from laminar import saving  # the room above

        saving.save_model(self, filepath)

    def get_config(self) -> dict[str, Any]:
        return {
            "features": {key: serialize_keras_object(f) for key, f in self.features.items()},
            "output_mode": self.output_mode,
            "crosses": [serialize_keras_object(cross) for cross in self.crosses],
            "crossing_dim": self.crossing_dim,
            "hashing_dim": self.hashing_dim,
            "num_discretization_bins": self.num_discretization_bins,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> FeatureSpace:
        """The feature space that `get_config` described; it learns from data, or from a file."""
        return cls(**config)

    def get_build_config(self) -> dict[str, Any]:
        return {"adapted": self._adapted}

    def build_from_config(self, config: dict[str, Any]) -> None:
        """Make room for what was learned, which comes with the file."""
        for feature in self.features.values():
            if isinstance(feature.preprocessor, Layer) and not feature.preprocessor.built:
                feature.preprocessor.build((None, 1))
        self.built = True
        self._adapted = bool(config.get("adapted"))


def _is_column(x: Any) -> bool:
    return len(x.shape) < 2


list_builtins("keras.utils", {"FeatureSpace": FeatureSpace})
list_builtins("keras.src.layers.preprocessing.feature_space", {"Feature": Feature, "Cross": Cross})
