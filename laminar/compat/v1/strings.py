"""`tf.strings`."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "as_string": ".inputs:as_string",
    **{
        name: f".unicode_texts:{name}"
        for name in (
            "bytes_split",
            "ngrams",
            "unicode_decode",
            "unicode_decode_with_offsets",
            "unicode_encode",
            "unicode_split",
            "unicode_split_with_offsets",
        )
    },
    "format": ".texts:string_format",
    "join": ".inputs:string_join",
    "length": ".inputs:string_length",
    "lower": ("input, encoding='', name=None", "op:StringLower(input)"),
    "upper": ("input, encoding='', name=None", "op:StringUpper(input)"),
    "strip": ("input, name=None", "op:StringStrip"),
    "reduce_join": ".inputs:reduce_join",
    "regex_replace": ".inputs:regex_replace",
    "regex_full_match": ".inputs:regex_full_match",
    "split": ".texts:split",
    "substr": ".inputs:substr",
    "unicode_transcode": ".texts:unicode_transcode",
    "unsorted_segment_join": ".texts:unsorted_segment_join",
    "to_number": ".inputs:string_to_number",
    "to_hash_bucket": ".inputs:string_to_hash_bucket_fast",
    "to_hash_bucket_fast": ".inputs:string_to_hash_bucket_fast",
    "to_hash_bucket_strong": ".texts:string_to_hash_bucket_strong",
}

__getattr__, __dir__ = face(__name__, NAMES)
