"""Every public name has an example in its docstring, which says what comes out."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.docstring_examples import Checker, examples_of, run
from tests.test_docs import hooks

# Networks differ in their sizes, and building takes up to seconds: the examples of these run.
NETWORKS = ("MobileNet", "MobileNetV2", "EfficientNetB0", "DenseNet121")
# Rooms whose examples need a package that laminar does without.
NEEDS = {
    "laminar.utils.audio_dataset": "scipy",
    "laminar.utils.image_dataset": "PIL",
    "laminar.utils.images": "PIL",
    "laminar.visualization.galleries": "matplotlib",
    "laminar.visualization.drawing": "PIL",
    "laminar.wrappers.SKLearnClassifier": "sklearn",
    "laminar.wrappers.SKLearnRegressor": "sklearn",
    "laminar.wrappers.SKLearnTransformer": "sklearn",
}


@cache
def public() -> dict[str, Any]:
    """The public classes and functions by where they are defined."""
    docs = hooks()
    found = {}
    for package in docs.PACKAGES:
        for path in docs.public(package):
            found[path] = _named(path)
    return found


def _named(path: str) -> Any:
    names = path.split(".")
    for count in range(len(names), 0, -1):
        try:
            thing: Any = import_module(".".join(names[:count]))
        except ModuleNotFoundError:
            continue
        for name in names[count:]:
            thing = getattr(thing, name)
        return thing
    raise AssertionError(f"nothing is at {path}")


def rooms() -> dict[str, list[str]]:
    """The names of each room: `laminar.layers.dense`, `laminar.engine.state`, ..."""
    found = defaultdict(list)
    for path in public():
        found[".".join(path.split(".")[:3])].append(path)
    return found


@pytest.mark.parametrize("room", rooms())
def test_the_examples_of_a_room(room: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(NEEDS.get(room, "laminar"))
    reports = []
    for path in rooms()[room]:
        name = path.rsplit(".", 1)[-1]
        if path.startswith("laminar.applications.") and name not in NETWORKS:
            continue
        folder = tmp_path / path
        folder.mkdir()
        monkeypatch.chdir(folder)
        reports.append(run(path, public()[path]))
    assert not any(reports), "\n".join(reports)


def test_every_public_name_has_an_example() -> None:
    assert [path for path, thing in public().items() if not examples_of(thing)] == []


@pytest.mark.parametrize(
    ("want", "got", "same"),
    [
        ("Tensor([ 1., 0.5 ])", "Tensor([1. , 0.5])", True),
        ("0.4621", "0.46211717", True),
        ("0.4621", "0.4631", False),
        ("[1, 2]", "[1, 3]", False),
        ("float32[2]", "float64[2]", False),
        ("[1. 2.]", "[1.]", False),
    ],
)
def test_outputs_are_compared_by_their_numbers(want: str, got: str, same: bool) -> None:
    assert Checker().check_output(want + "\n", got + "\n", 0) is same
