"""Errors: their classes, their text, the user's place, and that they travel."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle

import pytest

import laminar
from laminar.engine import errors
from laminar.engine.errors import InvalidArgumentError, LaminarError, NotFoundError, ShapeError
from laminar.engine.source import Location, inside_layer

ALL = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, LaminarError)
]

BUILTIN = [
    pytest.param(errors.InvalidArgumentError, ValueError, id="invalid"),
    pytest.param(errors.ShapeError, ValueError, id="shape"),
    pytest.param(errors.DTypeError, TypeError, id="dtype"),
    pytest.param(errors.NotFoundError, KeyError, id="not-found"),
    pytest.param(errors.MissingFileError, FileNotFoundError, id="file"),
    pytest.param(errors.FailedPreconditionError, RuntimeError, id="precondition"),
    pytest.param(errors.UnavailableError, ConnectionError, id="unavailable"),
    pytest.param(errors.UnimplementedError, NotImplementedError, id="unimplemented"),
    pytest.param(errors.DeadlineExceededError, TimeoutError, id="deadline"),
    pytest.param(errors.ResourceExhaustedError, MemoryError, id="exhausted"),
    pytest.param(errors.PermissionDeniedError, PermissionError, id="permission"),
    pytest.param(errors.DataLossError, ValueError, id="data-loss"),
]


@pytest.mark.parametrize(("kind", "builtin"), BUILTIN)
def test_an_error_is_also_pythons_own(
    kind: type[LaminarError], builtin: type[BaseException]
) -> None:
    assert issubclass(kind, builtin)


@pytest.mark.parametrize("kind", ALL, ids=lambda k: k.__name__)
def test_every_class_says_what_where_and_what_to_do(kind: type[LaminarError]) -> None:
    with inside_layer("model"), inside_layer("dense"):
        error = kind("Dense: expected 3, got 4", remedy="give 3")
    lines = str(error).splitlines()
    assert lines[0] == "Dense: expected 3, got 4"
    assert lines[1] == "  layer: model/dense"
    assert lines[2].startswith(f"  at: {__file__}:")
    assert 'error = kind("Dense: expected 3, got 4"' in lines[2]
    assert lines[3] == "  try: give 3"


def test_they_can_be_imported_from_a_module_of_laminar() -> None:
    module = importlib.import_module("laminar.errors")
    assert laminar.errors is module
    own = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
    assert {name for name in own if name.endswith("Error") or name == "Origin"} <= {*vars(module)}
    assert module.AbortedError is errors.AbortedError


def test_the_place_is_the_line_that_raised() -> None:
    frame = inspect.currentframe()
    assert frame is not None
    line, error = frame.f_lineno, InvalidArgumentError("wrong")
    assert error.location == Location(__file__, line, "test_the_place_is_the_line_that_raised")


def test_a_given_place_is_kept() -> None:
    place = Location("model.py", 7, "build")
    assert "  at: model.py:7" in str(LaminarError("wrong", location=place))


@pytest.mark.parametrize("kind", ALL, ids=lambda k: k.__name__)
def test_errors_travel_between_processes(kind: type[LaminarError]) -> None:
    with inside_layer("block"):
        error = kind("lost", remedy="look again")
    for twin in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(twin) is kind
        assert str(twin) == str(error)
        assert (twin.message, twin.remedy, twin.layer) == ("lost", "look again", "block")


def test_a_missing_key_reads_as_text() -> None:
    # A KeyError shows the repr of its argument; ours shows the message.
    assert str(NotFoundError("no op is named 'x'")).startswith("no op is named 'x'\n")


def test_errors_are_caught_by_their_kin() -> None:
    with pytest.raises(InvalidArgumentError, match="the axis"):
        raise ShapeError("the axis is gone")
