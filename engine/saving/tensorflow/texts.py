"""Rules for strings."""

from __future__ import annotations

from typing import Any

from ...errors import UnimplementedError
from ...ops.text import farmhash, siphash, string, string_match
from .rules import Call, rule

_UNITS = {"": "byte", "BYTE": "byte", "UTF8_CHAR": "char", "utf-8": "char"}


def _unit(call: Call, name: str) -> str:
    return _UNITS[call.node.text(name, "")]


@rule("StringLength")
def _length(call: Call) -> Any:
    return string.string_length(call[0], unit=_unit(call, "unit"))


@rule("StringLower")
def _lower(call: Call) -> Any:
    return string.string_lower(call[0], unit=_unit(call, "encoding"))


@rule("StringUpper")
def _upper(call: Call) -> Any:
    return string.string_upper(call[0], unit=_unit(call, "encoding"))


@rule("StringStrip")
def _strip(call: Call) -> Any:
    return string.string_strip(call[0])


@rule("Substr")
def _substr(call: Call) -> Any:
    return string.substr(call[0], call[1], call[2], _unit(call, "unit"), strict=True)


@rule("StringToNumber")
def _to_number(call: Call) -> Any:
    return string.to_number(call[0], call.node.attr("out_type", "float32"))


@rule("AsString")
def _as_string(call: Call) -> Any:
    attr = call.node.attr
    if attr("width", -1) != -1 or call.node.text("fill", ""):
        raise UnimplementedError("numbers are only written without filling them up")
    form = "e" if attr("scientific", False) else "g" if attr("shortest", False) else ""
    return string.as_string(call[0], attr("precision", -1), form)


@rule("ReduceJoin")
def _reduce_join(call: Call) -> Any:
    axes = call.known_list(1)
    if len(axes) != 1:
        raise UnimplementedError("strings are only joined along one axis")
    if call.node.attr("keep_dims", False):
        raise UnimplementedError("the axis that strings are joined along only goes")
    return string.string_join(call[0], axes[0], call.node.text("separator", ""))


@rule("StaticRegexReplace")
def _replace(call: Call) -> Any:
    text = call.node.text
    count = 0 if call.node.attr("replace_global", True) else 1
    return string_match.regex_replace(call[0], text("pattern"), text("rewrite"), count)


@rule("StringToHashBucketFast")
def _fast_bucket(call: Call) -> Any:
    return farmhash.fingerprint_bucket(farmhash.fingerprint(call[0]), call.node.attr("num_buckets"))


@rule("StringToHashBucketStrong")
def _strong_bucket(call: Call) -> Any:
    first, second = call.node.attr("key")
    return siphash.to_hash_bucket_strong(call[0], call.node.attr("num_buckets"), (first, second))
