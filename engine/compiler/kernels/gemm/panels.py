"""Panels of a result: some vectors of its columns, the first of them one wider than the others."""

from __future__ import annotations

from ...codegen.function import IRFunction, Value
from ..addressing import Words, minimum


def column_of(fn: IRFunction, words: Words, panel: Value, lanes: int) -> Value:
    """The first column of a panel, by words about panels; the one behind the last panel too."""
    wide = minimum(fn, panel, words["num_wide_panels"])
    found = panel * words["panel_columns"] - (panel - wide) * lanes
    return minimum(fn, found, words["columns"])
