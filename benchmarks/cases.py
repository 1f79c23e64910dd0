"""A workload in one framework: what a worker prepares, checks and times."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[1]


def seconds_of(run: Callable[[], object], number: int) -> float:
    """Seconds of one call of `run`: the mean of `number` calls in a row."""
    start = perf_counter()
    for _ in range(number):
        run()
    return (perf_counter() - start) / number


class Case(ABC):
    """A prepared workload; its constructor takes a `Problem`.

    `steps` is how many steps (or calls) one `run` makes; the time of a step is reported. A run that
    is a fresh process does not get faster by being repeated.
    """

    steps = 1
    is_fresh_process = False

    @abstractmethod
    def checks(self) -> list[float]:
        """Run for the first time; gives the numbers that show whether the results are right."""

    @abstractmethod
    def run(self) -> None:
        """Do what is timed, and wait until it is done."""

    def sample(self, number: int) -> float:
        """Seconds of one step, from `number` runs in a row."""
        return seconds_of(self.run, number) / self.steps


class Late(Case):
    """What a case takes when it has run for a while, and its numbers have become others.

    Args:
        case: what is timed.
        first: so many steps run before.
    """

    def __init__(self, case: Case, first: int = 3000) -> None:
        self.case, self.first, self.steps = case, first, case.steps

    def checks(self) -> list[float]:
        found = self.case.checks()
        for _ in range(-(-self.first // self.steps)):
            self.case.run()
        return found

    def run(self) -> None:
        self.case.run()


class FirstUse(Case):
    """What statements, such as an import, take in an interpreter that has loaded nothing yet."""

    is_fresh_process = True

    def __init__(self, statements: str) -> None:
        self.program = (
            "import time; start = time.perf_counter(); "
            f"{statements}; print(time.perf_counter() - start)"
        )

    def checks(self) -> list[float]:
        return []

    def run(self) -> None:
        self.seconds()

    def sample(self, number: int) -> float:
        return sum(self.seconds() for _ in range(number)) / number

    def seconds(self) -> float:
        return float(printed_by("-c", self.program))


class Program(Case):
    """A whole program in a fresh interpreter, which prints its "test accuracy" in percent."""

    is_fresh_process = True

    def __init__(self, *arguments: str) -> None:
        self.arguments = arguments

    def checks(self) -> list[float]:
        printed = printed_by(*self.arguments)
        found = re.search(r"test accuracy (\d+\.\d+)%", printed)
        if found is None:
            raise ValueError(f"no test accuracy in what the program printed:\n{printed}")
        return [float(found[1]) / 100]

    def run(self) -> None:
        printed_by(*self.arguments)


def printed_by(*arguments: str, variables: Mapping[str, str] | None = None) -> str:
    """What this interpreter, started afresh in the root of the repository, prints.

    Args:
        arguments: of the interpreter.
        variables: added to the environment.
    """
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **(variables or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout
