"""`tf.ragged`."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    name: f".ragged_tensors:{name}"
    for name in (
        "RaggedTensorValue",
        "boolean_mask",
        "constant",
        "constant_value",
        "map_flat_values",
        "placeholder",
        "range",
        "row_splits_to_segment_ids",
        "segment_ids_to_row_splits",
        "stack",
        "stack_dynamic_partitions",
    )
}

__getattr__, __dir__ = face(__name__, NAMES)
