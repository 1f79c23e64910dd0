"""clear_session."""

from __future__ import annotations

import gc
import weakref

from laminar import layers, utils
from laminar.engine import get_default_graph


def test_names_begin_again() -> None:
    layers.Dense(1)
    utils.clear_session()
    assert [layers.Dense(1).name for _ in range(2)] == ["dense", "dense_1"]


def test_the_graph_goes() -> None:
    graph = weakref.ref(get_default_graph())
    utils.clear_session()
    gc.collect()
    assert graph() is not get_default_graph()
    assert graph() is None
