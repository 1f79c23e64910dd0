"""The ops of summaries: their messages, merged and written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.graph import bool_, string
from laminar.engine.io.summaries import Summary
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.io.summaries import MESSAGES, SUMMARIES, merge_summary, write_summary
from laminar.engine.resources import summary_writing

ONE = (("max_outputs", 1),)
CASES: dict[str, tuple[list[Any], tuple[tuple[str, Any], ...]]] = {
    "scalar": ([np.float16(2.5)], ()),
    "histogram": ([np.arange(6, dtype="int32")], ()),
    "image": ([np.zeros((2, 3, 4, 1), "uint8")], ONE),
    "audio": ([np.zeros((1, 5), "float32"), np.float32(100)], ONE),
    "text": ([np.array(b"words", object)], ()),
}


class Kept:
    """What was written."""

    def __init__(self) -> None:
        self.found: list[tuple[int | None, Summary]] = []

    def add_summary(self, summary: Summary, global_step: int | None = None) -> None:
        self.found.append((global_step, summary))


@pytest.mark.parametrize("kind", SUMMARIES)
def test_a_message_says_what_is_written(kind: str) -> None:
    values, options = CASES[kind]
    tensors = [convert_to_tensor(v) for v in values]
    message = MESSAGES[kind](*tensors, kind=kind, tag="a", options=options)
    assert message.dtype == string
    told = Summary.from_bytes(np.asarray(message).item())
    assert [v.tag for v in told.value] == ["a"]
    step = convert_to_tensor(3, "int64")
    assert not bool(write_summary(step, True, *tensors, kind=kind, tag="a", options=options))
    kept = Kept()
    with summary_writing.sink.block(kept):
        written = write_summary(step, True, *tensors, kind=kind, tag="a", options=options)
    assert written.dtype == bool_
    assert bool(written)
    assert kept.found == [(3, told)]


def test_merged_messages_have_all_values() -> None:
    x = convert_to_tensor(1.0)
    one, other = (MESSAGES["scalar"](x, kind="scalar", tag=tag, options=()) for tag in ("a", "b"))
    merged = merge_summary(one, other)
    found = Summary.from_bytes(np.asarray(merged).item()).value
    assert [(v.tag, v.simple_value) for v in found] == [("a", 1.0), ("b", 1.0)]
