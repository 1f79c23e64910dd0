"""Progbar: averages, and the line at the end."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from laminar import utils
from laminar.engine.errors import InvalidArgumentError


def values(text: str) -> str:
    """The lines without the times."""
    return re.sub(r" - [\d.:]+(us|ms|s) - [\d.:]+(us|ms|s)/", " - ", text)


def test_values_are_averaged_by_steps(capsys: pytest.CaptureFixture[str]) -> None:
    bar = utils.Progbar(4, verbose=2)
    bar.update(1, [("loss", 1.0)])
    bar.update(2, [("loss", 2.0)])
    assert capsys.readouterr().out == ""
    bar.update(4, [("loss", 3.0)])  # two steps at once
    assert values(capsys.readouterr().out) == "4/4 - step - loss: 2.2500\n"


@pytest.mark.parametrize("options", [{"stateful_metrics": ["a"]}, {"stateless_metrics": ["b"]}])
def test_values_that_are_shown_as_they_are(
    capsys: pytest.CaptureFixture[str], options: dict[str, Any]
) -> None:
    bar = utils.Progbar(2, verbose=2, unit_name="sample", **options)
    bar.add(1, [("a", 1.0), ("b", np.float32(1))])
    bar.add(1, [("a", 5.0), ("b", np.float32(2))])
    assert values(capsys.readouterr().out) == "2/2 - sample - a: 5.0000 - b: 1.5000\n"


def test_an_end_that_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    bar = utils.Progbar(None, verbose=2)
    bar.update(5)
    bar.update(7, finalize=True)
    bar.update(8, finalize=True)
    assert values(capsys.readouterr().out) == "7 steps - step\n"


def test_silence(capsys: pytest.CaptureFixture[str]) -> None:
    bar = utils.Progbar(1, verbose=0)
    bar.update(1, [("loss", 1.0)])
    assert capsys.readouterr().out == ""


def test_one_list_of_names() -> None:
    with pytest.raises(InvalidArgumentError, match="exclude each other"):
        utils.Progbar(1, stateful_metrics=["a"], stateless_metrics=["b"])


def test_several_numbers_count_as_their_mean(capsys: pytest.CaptureFixture[str]) -> None:
    bar = utils.Progbar(2, verbose=2)
    bar.update(1, values=[("value", [0.0, 1.0, 2.0])])
    bar.update(2, values=[("value", np.array([3.0, 5.0]))], finalize=True)
    assert "value: 2.5" in capsys.readouterr().out


def test_a_file_gets_a_line_for_each_update(capsys: pytest.CaptureFixture[str]) -> None:
    bar = utils.Progbar(3, interval=0.0)
    bar.update(1, [("value", 0.0)])
    bar.update(2, [("value", 2.0)])
    bar.update(3, [("value", 4.0)])
    lines = values(capsys.readouterr().out).splitlines()
    assert lines == [f"{i}/3 - step - value: {i - 1}.0000" for i in (1, 2, 3)]


def test_lines_of_a_file_keep_an_interval(capsys: pytest.CaptureFixture[str]) -> None:
    bar = utils.Progbar(100, interval=60.0)
    for i in range(1, 101):
        bar.update(i)
    assert len(capsys.readouterr().out.splitlines()) == 2  # the first and the last
