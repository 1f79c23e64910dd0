"""`tf.feature_column`: how features of examples become the inputs of a model."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    **{
        name: f".feature_makers:{name}"
        for name in (
            "bucketized_column",
            "categorical_column_with_hash_bucket",
            "categorical_column_with_identity",
            "categorical_column_with_vocabulary_file",
            "categorical_column_with_vocabulary_list",
            "embedding_column",
            "indicator_column",
            "numeric_column",
            "weighted_categorical_column",
        )
    },
    **{
        name: f".feature_models:{name}"
        for name in ("input_layer", "linear_model", "make_parse_example_spec")
    },
}

__getattr__, __dir__ = face(__name__, NAMES)
