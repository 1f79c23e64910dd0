"""`tf.io`: files, records and messages."""

from __future__ import annotations

import importlib
from typing import Any

from .face import OWN, Line, face
from .image import FILES

# Also at the top of `tf`.
PARTS: dict[str, Line] = {
    name: f".file_parts:{name}"
    for name in (
        "decode_compressed",
        "decode_json_example",
        "parse_tensor",
        "serialize_tensor",
        "write_file",
    )
}
NAMES: dict[str, Line] = {
    **FILES,
    **PARTS,
    "FIFOQueue": ".queues:FIFOQueue",
    "FixedLenFeature": "engine:FixedLenFeature",
    "FixedLenSequenceFeature": "engine:FixedLenSequenceFeature",
    "PaddingFIFOQueue": ".queues:PaddingFIFOQueue",
    "QueueBase": "engine:QueueBase",
    "TFRecordCompressionType": ".inputs:TFRecordCompressionType",
    "TFRecordOptions": ".inputs:TFRecordOptions",
    "TFRecordWriter": ".inputs:TFRecordWriter",
    "SparseFeature": "engine:SparseFeature",
    "VarLenFeature": "engine:VarLenFeature",
    "decode_base64": ("input, name=None", "op:DecodeBase64"),
    "encode_base64": ("input, pad=False, name=None", "op:EncodeBase64(input, pad=pad)"),
    "PriorityQueue": ".queues:PriorityQueue",
    "RandomShuffleQueue": ".queues:RandomShuffleQueue",
    "decode_csv": ".inputs:decode_csv",
    "decode_image": ".inputs:decode_image",
    "decode_jpeg": ".inputs:decode_jpeg",
    "decode_png": ".inputs:decode_png",
    "decode_raw": ".inputs:decode_raw",
    "deserialize_many_sparse": ".sparse_tensors:deserialize_many_sparse",
    "encode_jpeg": ".inputs:encode_jpeg",
    "encode_png": ".inputs:encode_png",
    "match_filenames_once": (OWN, "engine:match_filenames_once"),
    "matching_files": (OWN, "engine:matching_files"),
    "parse_example": ".inputs:parse_example",
    "parse_single_example": ".inputs:parse_single_example",
    "parse_sequence_example": ".inputs:parse_sequence_example",
    "parse_single_sequence_example": ".inputs:parse_single_sequence_example",
    "read_file": (OWN, "engine:read_file"),
    "serialize_many_sparse": ".sparse_tensors:serialize_many_sparse",
    "serialize_sparse": ".sparse_tensors:serialize_sparse",
    "write_graph": ".graphs:write_graph",
    "tf_record_iterator": ".inputs:tf_record_iterator",
}

_get, _names = face(__name__, NAMES)


def __getattr__(name: str) -> Any:
    return importlib.import_module(".io_gfile", __package__) if name == "gfile" else _get(name)


def __dir__() -> list[str]:
    return sorted({*_names(), "gfile"})
