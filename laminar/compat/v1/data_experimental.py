"""`tf.data.experimental`: transformations for `Dataset.apply`."""

from __future__ import annotations

from .face import Line, face

# A number of calls or of elements that the pipeline chooses, and sizes that are none.
AUTOTUNE = -1
INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = -1, -2

NAMES: dict[str, Line] = {
    name: f".pipeline_transforms:{name}"
    for name in (
        "cardinality",
        "enumerate_dataset",
        "get_single_element",
        "map_and_batch",
        "parallel_interleave",
        "shuffle_and_repeat",
        "unbatch",
    )
}

__getattr__, __dir__ = face(__name__, NAMES)
