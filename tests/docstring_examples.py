"""Examples in docstrings, run as an interpreter would, and compared number by number.

An example finds `np`, `laminar`, `engine`, `layers` and `ops`; numbers are shown with four digits.
"""

from __future__ import annotations

import doctest
import inspect
import re
from typing import Any

import numpy as np

import laminar
from laminar import engine, layers, ops

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+\.?\d*(?:e[-+]?\d+)?")


class Checker(doctest.OutputChecker):
    """Numbers with a point agree to what is printed of them; other text does but for blanks."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(want, got, optionflags) or (
            _text(want) == _text(got) and _close(_NUMBER.findall(want), _NUMBER.findall(got))
        )


def _text(output: str) -> str:
    return "".join(_NUMBER.sub("#", output).split())


def _close(want: list[str], got: list[str]) -> bool:
    """As the last digits of floats depend on the processor; whole numbers are equal."""
    return all(
        float(a) == float(b)
        if a.lstrip("+-").isdigit() and b.lstrip("+-").isdigit()
        else abs(float(a) - float(b)) <= 2e-4 + 1e-3 * abs(float(a))
        for a, b in zip(want, got, strict=True)
    )


def examples_of(thing: Any) -> list[doctest.Example]:
    """What the docstring of a class or function has of examples; it does not inherit any."""
    doc = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
    return doctest.DocTestParser().get_examples(doc or "")


def run(name: str, thing: Any) -> str:
    """What does not come out as the docstring says; the examples run in the working directory."""
    laminar.utils.clear_session(free_memory=False)
    laminar.set_random_seed(0)
    given: dict[str, Any] = {
        "np": np,
        "laminar": laminar,
        "engine": engine,
        "layers": layers,
        "ops": ops,
    }
    given["__name__"] = "__main__"
    report: list[str] = []
    runner = doctest.DocTestRunner(
        checker=Checker(),
        verbose=False,
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
    )
    test = doctest.DocTest(examples_of(thing), given, name, None, None, None)
    with np.printoptions(precision=4, suppress=True):
        runner.run(test, out=report.append)
    return "".join(report)
