"""Raise: the user's exception, of the narrowest class that is known."""

from __future__ import annotations

from typing import Any

import pytest

from laminar import engine
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError, LaminarError
from laminar.engine.ops.core.raising import raise_op, raised_attrs


class MineError(KeyError):
    pass


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (MineError("text"), MineError),
        (ValueError("text"), ValueError),
        (FailedPreconditionError("text"), FailedPreconditionError),
    ],
)
def test_an_error_is_raised_as_what_it_was(error: Exception, kind: type[Exception]) -> None:
    attrs = {**raised_attrs(error), "shape": [None], "dtype": "float32"}
    with pytest.raises(kind, match="text") as eager:
        raise_op(**attrs)
    assert isinstance(eager.value, LaminarError)
    with engine.Graph().as_default(), engine.Session() as session:
        (never,) = raise_op.many(**attrs)
        assert (never.dtype, never.shape) == ("float32", (None,))
        with pytest.raises(kind, match="text"):
            session.run(never)


def test_classes_that_nobody_knows() -> None:
    attrs: dict[str, Any] = {"message": "text", "shape": [], "dtype": "bool"}
    with pytest.raises(LookupError, match="text"):
        raise_op(kinds=("elsewhere.Error", "builtins.LookupError"), **attrs)
    with pytest.raises(InvalidArgumentError, match="text"):
        raise_op(kinds=("elsewhere.Error", "builtins.print"), **attrs)
