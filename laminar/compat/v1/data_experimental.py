"""`tf.data.experimental`: transformations for `Dataset.apply`."""

from __future__ import annotations

from .face import Line, face

# A number of calls or of elements that the pipeline chooses, and sizes that are none.
AUTOTUNE = -1
INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = -1, -2

_ROOMS = {
    "pipeline_walks": (
        "Counter RandomDataset Reducer bucket_by_sequence_length choose_from_datasets "
        "copy_to_device group_by_reducer group_by_window prefetch_to_device rejection_resample "
        "sample_from_datasets scan take_while unique"
    ),
    "pipeline_files": (
        "CsvDataset TFRecordWriter make_batched_features_dataset make_csv_dataset "
        "parse_example_dataset"
    ),
    "pipeline_options": (
        "DistributeOptions MapVectorizationOptions OptimizationOptions StatsOptions "
        "ThreadingOptions"
    ),
}
NAMES: dict[str, Line] = {
    **{name: f".{room}:{name}" for room, names in _ROOMS.items() for name in names.split()},
    "get_structure": ".pipelines:get_structure",
    "map_and_batch_with_legacy_function": ".pipeline_transforms:map_and_batch",
    "Structure": ".specs:TypeSpec",
    "TensorStructure": ("dtype, shape", "engine:TensorSpec(shape, dtype)"),
    "SparseTensorStructure": ("dtype, shape", ".specs:SparseTensorSpec(shape, dtype)"),
    "RaggedTensorStructure": (
        "dtype, shape, ragged_rank",
        ".specs:RaggedTensorSpec(shape, dtype, ragged_rank)",
    ),
    **{
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
    },
}

__getattr__, __dir__ = face(__name__, NAMES)
