"""Where the user's program stands: the innermost frame that is not laminar's own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar.engine import Graph, RunOptions, constant, placeholder
from laminar.engine.errors import LaminarError
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.source import Location, inside_layer, layer_path, user_location


def test_the_caller_is_the_user() -> None:
    place = user_location()
    assert place is not None
    assert place.filename == __file__
    assert place.function == "test_the_caller_is_the_user"
    assert str(place) == f"{__file__}:{place.line}"


def test_operations_remember_the_users_line() -> None:
    with Graph().as_default():
        first = constant(1.0)
        second = first + first  # three files of laminar stand between this line and the graph
    location = second.op.location
    assert location == Location(__file__, location.line, "test_operations_remember_the_users_line")
    assert location.line == first.op.location.line + 1  # type: ignore[attr-defined]  # in a graph


def test_the_first_foreign_frame_of_an_error_is_the_users() -> None:
    with pytest.raises(LaminarError) as caught:
        matmul(np.ones((2, 3)), np.ones((2, 3)))
    here = Path(__file__)
    frames = [Path(entry.path) for entry in caught.traceback]
    root = Path(laminar.__file__).resolve().parent.parent
    own = [p.resolve().is_relative_to(root / "engine") for p in frames]
    foreign = [p for p, mine in zip(reversed(frames), reversed(own), strict=True) if not mine]
    assert foreign[0] == here
    location = caught.value.location
    assert location is not None
    assert location.filename == str(here)


def test_what_a_dataclass_has_written_is_nobodys() -> None:
    with pytest.raises(LaminarError) as caught:
        RunOptions(timeout_in_ms=-1)
    assert caught.value.location is not None
    assert caught.value.location.filename == __file__


def test_a_line_of_the_command_is_the_users() -> None:
    found: dict[str, Any] = {"user_location": user_location}
    exec(compile("place = user_location()", "<string>", "exec"), found)
    assert found["place"].filename == "<string>"


def test_library_frames_are_nobodys() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(user_location).result() is None


def test_layer_path_nests_and_is_restored_after_an_error() -> None:
    assert layer_path() == ""
    with inside_layer("model"):
        with pytest.raises(KeyError, match="model/block"), inside_layer("block"):
            raise KeyError(layer_path())
        assert layer_path() == "model"
    assert layer_path() == ""


def test_each_thread_has_its_own_layer_path() -> None:
    found: list[str] = []
    with inside_layer("model"):
        thread = threading.Thread(target=lambda: found.append(layer_path()))
        thread.start()
        thread.join()
    assert found == [""]


def test_operations_remember_their_layer() -> None:
    with Graph().as_default(), inside_layer("model"), inside_layer("dense"):
        x = constant(1.0)
    assert x.op.layer == "model/dense"  # type: ignore[attr-defined]  # in a graph


@pytest.mark.parametrize(
    "use",
    [
        lambda x: np.sin(x),
        lambda x: np.mean(x),  # numpy's own code asks for the value
        lambda x: np.apply_along_axis(np.exp, 0, x),
        lambda x: np.vectorize(lambda v: v + 1)(x),
        lambda x: np.float32(x),
        lambda x: list(map(np.exp, [x])),
    ],
)
def test_a_symbol_in_numpys_hands_is_told_of_at_the_users_line(use: Any) -> None:
    with Graph().as_default():
        x: Any = placeholder("float32", [2])
        with pytest.raises(LaminarError, match="is symbolic") as caught:
            use(x)
    assert caught.value.location is not None
    assert caught.value.location.filename == __file__
    assert "laminar.ops" in str(caught.value.remedy)
