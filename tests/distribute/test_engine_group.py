"""What launchers on another engine share."""

from __future__ import annotations

import pytest

from laminar.distribute.engine_group import with_restarts
from laminar.engine.errors import InvalidArgumentError


class Training:
    """Raises these errors in turn, then gives how often it was called."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.calls = list(errors), 0

    def __call__(self) -> int:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.calls


def test_a_training_that_fails_is_restarted_with_a_warning() -> None:
    training = Training(RuntimeError("lost\ndetails"), OSError("again"))
    with pytest.warns(UserWarning, match="restarted") as warned:
        assert with_restarts("who", training, 2) == 3
    told = [str(w.message).partition("\n")[0] for w in warned]
    assert [line.rpartition("who: ")[2] for line in told] == [
        "the training failed and is restarted, 2 restarts are left: lost",
        "the training failed and is restarted, 1 restarts are left: again",
    ]


def test_the_last_failure_is_raised() -> None:
    training = Training(*(RuntimeError(f"failure {n}") for n in range(3)))
    with (
        pytest.warns(UserWarning, match="restarted"),
        pytest.raises(RuntimeError, match="failure 1"),
    ):
        with_restarts("who", training, 1)
    assert training.calls == 2


def test_a_wrong_argument_is_raised_at_once() -> None:
    training = Training(InvalidArgumentError("wrong"))
    with pytest.raises(InvalidArgumentError, match="wrong"):
        with_restarts("who", training, 5)
    assert training.calls == 1
