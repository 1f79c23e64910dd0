"""`tf.train.Example` and what it is made of: messages that are only written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from laminar import engine


class _Values:
    """A list of values of one type."""

    dtype: Any = np.float32

    def __init__(self, value: Sequence[Any] = ()) -> None:
        self.value = list(value)


class FloatList(_Values):
    """Numbers."""


class Int64List(_Values):
    """Whole numbers."""

    dtype = np.int64


class BytesList(_Values):
    """Strings of bytes."""

    dtype = object


class Feature:
    """A list of values, of one of three types."""

    def __init__(
        self,
        bytes_list: BytesList | None = None,
        float_list: FloatList | None = None,
        int64_list: Int64List | None = None,
    ) -> None:
        self.values: _Values = bytes_list or float_list or int64_list or FloatList()

    def array(self) -> Any:
        """The values as `laminar.engine.encode_example` takes them."""
        return np.array(self.values.value, self.values.dtype)


class Features:
    """Features by name."""

    def __init__(self, feature: Mapping[str, Feature] | None = None) -> None:
        self.feature = dict(feature or {})

    def arrays(self) -> dict[str, Any]:
        """The values of each."""
        return {key: feature.array() for key, feature in self.feature.items()}


class FeatureList:
    """A feature for each step of a sequence."""

    def __init__(self, feature: Sequence[Feature] = ()) -> None:
        self.feature = list(feature)


class FeatureLists:
    """Lists of features by name."""

    def __init__(self, feature_list: Mapping[str, FeatureList] | None = None) -> None:
        self.feature_list = dict(feature_list or {})


class Example:
    """What one record holds."""

    def __init__(self, features: Features | None = None) -> None:
        self.features = features or Features()

    def SerializeToString(self) -> bytes:  # noqa: N802  # its name there
        """The bytes of the message."""
        return engine.encode_example(self.features.arrays())


class SequenceExample:
    """What one record of a sequence holds."""

    def __init__(
        self, context: Features | None = None, feature_lists: FeatureLists | None = None
    ) -> None:
        self.context = context or Features()
        self.feature_lists = feature_lists or FeatureLists()

    def SerializeToString(self) -> bytes:  # noqa: N802  # its name there
        """The bytes of the message."""
        steps = {
            key: [feature.array() for feature in found.feature]
            for key, found in self.feature_lists.feature_list.items()
        }
        return engine.encode_sequence_example(self.context.arrays(), steps)
