"""What is shown of a loop: on a terminal, in a notebook, in a log file."""

from __future__ import annotations

import io
import logging
import re
import sys
import threading
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tqdm import tqdm  # type: ignore[import-untyped]  # it ships no types

import laminar
from laminar import layers
from laminar.callbacks import LambdaCallback, ProgbarLogger, bars, display
from laminar.callbacks.display import Display, format_seconds, format_values, say

from .conftest import FakeModel, Screen, as_output

X = np.ones((40, 2), "float32")
Y = X[:, :1]


class Clock:
    """A time that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(display, "time", SimpleNamespace(perf_counter=clock))
    monkeypatch.setattr(display._Screen, "drawn", -np.inf)
    return clock


def linear() -> laminar.Sequential:
    model = laminar.Sequential([layers.Input((2,)), layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", "mse")
    return model


def plain(lines: list[str]) -> list[str]:
    """Lines without the times."""
    return [re.sub(r"- [\d.:]+(us|ms|s)?(?=(/step|$| -))", "- _", line) for line in lines]


LOGS = {"loss": 0.5, "acc": 0.25}


def test_a_terminal_sees_a_bar_and_then_a_line(screen: Screen, clock: Clock) -> None:
    shown = Display("Epoch 1/3", 40, has_bar=True)
    assert screen.lines == ["Epoch 1/3 0/40 |                    |"]
    for done in range(1, 11):
        clock.now += 0.2
        shown.advance(done, LOGS)
    (line,) = screen.lines
    assert re.fullmatch(
        r"Epoch 1/3 10/40 \|█████               \| \d\d:\d\d left - loss: 0.5000 - acc: 0.2500",
        line,
    )
    shown.finish({"loss": 0.125})
    assert screen.lines == ["Epoch 1/3 - 10/40 - 2.0s - 200ms/step - loss: 0.1250"]
    assert screen.text.endswith("\n")


def test_the_first_step_does_not_count_for_the_time_of_a_step(clock: Clock) -> None:
    shown = Display("", 3, has_bar=False)
    clock.now += 5  # it compiles
    shown.advance(1)
    clock.now += 0.25
    shown.advance(3)
    clock.now += 9  # it validates
    assert shown.line({}) == "3/3 - 14.2s - 125ms/step"


def test_unknown_number_of_steps(screen: Screen, clock: Clock) -> None:
    shown = Display("Epoch 1/2", None, has_bar=True)
    clock.now += 1
    shown.advance(7, LOGS)
    (line,) = screen.lines
    assert re.fullmatch(r"Epoch 1/2 7 steps \d\d:\d\d - loss: 0.5000 - acc: 0.2500", line)
    shown.finish(LOGS)
    assert screen.lines == ["Epoch 1/2 - 7 steps - 1.0s - 143ms/step - loss: 0.5000 - acc: 0.2500"]


@pytest.mark.parametrize("total", [1000, None])
def test_lines_are_cut_to_the_terminal(
    screen: Screen, clock: Clock, monkeypatch: pytest.MonkeyPatch, total: int | None
) -> None:
    monkeypatch.setattr("tqdm.std._screen_shape_wrapper", lambda: lambda fp: (40, 24))
    shown = Display("Epoch 1/2", total, has_bar=True)
    clock.now += 1
    shown.advance(7, {f"value_{i}": i for i in range(9)})
    assert len(screen.lines) == 1
    assert len(screen.lines[0]) <= 40
    shown.finish({"loss": 0.5})


def test_at_most_ten_drawings_a_second(
    screen: Screen, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    formatted: list[Any] = []

    def note(values: Any, current: Any = None) -> str:
        formatted.append(values)
        return ""

    monkeypatch.setattr(display, "format_values", note)
    shown = Display("", 1000, has_bar=True)
    for done in range(1, 1001):
        clock.now += 0.001
        shown.advance(done, LOGS)
    assert 9 <= len(formatted) <= 11
    shown.finish()


def test_loops_shorter_than_that_share_the_drawings(screen: Screen, clock: Clock) -> None:
    for _ in range(100):
        shown = Display("", 1, has_bar=True)
        clock.now += 0.01
        shown.advance(1)
        shown.finish()
    assert len(screen.lines) == 100
    assert screen.text.count("|") // 2 <= 30  # each of the ten is drawn when it is made, and after


@pytest.mark.parametrize("has_bar", [True, False])
def test_a_log_file_gets_the_lines_alone(log_file: Screen, clock: Clock, has_bar: bool) -> None:
    shown = Display("Epoch 1/1", 3, has_bar=has_bar)
    for done in (1, 2, 3):
        clock.now += 1
        shown.advance(done, LOGS)
        shown.note("validating")
    shown.finish(LOGS)
    assert log_file.text == "Epoch 1/1 - 3/3 - 3.0s - 1.0s/step - loss: 0.5000 - acc: 0.2500\n"


def test_what_is_said_stands_above_the_bar(screen: Screen, clock: Clock) -> None:
    shown = Display("Epoch 1/3", 40, has_bar=True)
    say("a message")
    assert screen.lines == ["a message", "Epoch 1/3 0/40 |                    |"]
    shown.finish()
    assert len(screen.lines) == 2


def test_braces_in_names(screen: Screen, clock: Clock) -> None:
    shown = Display("{x}", 4, has_bar=True)
    clock.now += 1
    shown.advance(1, {"{loss}": 1.0})
    assert screen.lines[0].startswith("{x} 1/4 |█████")
    assert screen.lines[0].endswith("{loss}: 1.0000")
    shown.finish()


def test_below_the_bar_of_somebody_else(screen: Screen, clock: Clock) -> None:
    with tqdm(total=3, file=screen, bar_format="outer {n}") as outer:
        shown = Display("Epoch 1/1", 4, has_bar=True)
        assert screen.lines == ["outer 0", "Epoch 1/1 0/4 |                    |"]
        shown.advance(4)
        shown.finish({"loss": 1.0})
        assert plain(screen.lines) == ["Epoch 1/1 - 4/4 - _ - _/step - loss: 1.0000", "outer 0"]
        outer.update(1)
    assert plain(screen.lines)[1] == "outer 1"


def test_a_line_too_long_for_the_terminal_breaks_between_values(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    values = {"loss": 0.5, "accuracy": 0.25, "val_loss": 0.75}
    for columns, is_terminal, expected in (
        (60, True, ["Epoch 1/1 - 4/4 - _ - _/step - loss: 0.5000", "    accuracy: 0.2500"]),
        (60, False, ["Epoch 1/1 - 4/4 - _ - _/step - loss: 0.5000 - accuracy: 0.2500"]),
        (200, True, ["Epoch 1/1 - 4/4 - _ - _/step - loss: 0.5000 - accuracy: 0.2500"]),
    ):
        monkeypatch.setenv("COLUMNS", str(columns))
        screen = as_output(Screen(is_terminal=is_terminal), monkeypatch)
        shown = Display("Epoch 1/1", 4, has_bar=False)
        clock.now += 1
        shown.advance(4)
        shown.finish(values)
        rest = " - val_loss: 0.7500"
        assert plain(screen.lines) == [*expected[:-1], expected[-1] + rest]
        assert all(len(line) <= columns for line in screen.lines) is is_terminal


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> tuple[Screen, list[Any]]:
    """What a cell gets as a stream, and its other outputs: the texts that each has shown."""

    class OutStream(Screen):
        def isatty(self) -> bool:
            return False

    OutStream.__module__ = "ipykernel.iostream"
    outputs: list[list[str]] = []

    class Handle:
        def __init__(self, bundle: Any) -> None:
            outputs.append([])
            self.texts = outputs[-1]
            self.update(bundle, raw=True)

        def update(self, bundle: Any, *, raw: bool) -> None:
            assert raw
            self.texts.append(bundle["text/plain"])

    shell = SimpleNamespace(execution_count=7)
    modules: dict[str, dict[str, Any]] = {
        "IPython": {},
        "IPython.core": {},
        "IPython.core.getipython": {"get_ipython": lambda: shell},
        "IPython.display": {"display": lambda bundle, raw, display_id: Handle(bundle)},
    }
    for name, given in modules.items():
        module = ModuleType(name)
        vars(module).update(given)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(bars._CellOutput, "handle", None)
    return as_output(OutStream(), monkeypatch), outputs


def test_a_cell_of_a_notebook_has_one_output_for_bars(notebook: Any, clock: Clock) -> None:
    stream, outputs = notebook
    with tqdm(total=3, file=io.StringIO()):  # in a widget of its own
        for epoch in (1, 2):
            shown = Display(f"Epoch {epoch}/2", 4, has_bar=True)
            clock.now += 1
            shown.advance(2)
            shown.finish()
    assert plain(stream.lines) == [f"Epoch {n}/2 - 2/4 - _ - _/step" for n in (1, 2)]
    assert "\r" not in stream.text
    assert "\x1b" not in stream.text
    (texts,) = outputs
    assert texts[1].startswith("Epoch 1/2 2/4 |██████████          |")
    assert texts[-1] == ""


WIDTHS = {
    200: "Epoch 1/3 10/40 |█████               | 00:06 left - 160 examples/s - waiting on data 50 %"
    " - loss: 0.5000 - acc: 0.2500",
    80: "Epoch 1/3 10/40 |█████               | - loss: 0.5000 - acc: 0.2500",
    50: "Epoch 1/3 10/40 - loss: 0.5000 - acc: 0.2500",
}


@pytest.mark.parametrize("columns", WIDTHS)
def test_the_values_are_the_last_to_go(
    screen: Screen, clock: Clock, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setattr("tqdm.std._screen_shape_wrapper", lambda: lambda fp: (columns, 24))
    flow = SimpleNamespace(batch_size=32, waited_seconds=0.0)
    shown = Display("Epoch 1/3", 40, has_bar=True, flow=flow)
    for done in range(1, 11):
        clock.now += 0.2
        flow.waited_seconds += 0.1
        shown.advance(done, LOGS)
    (line,) = screen.lines
    assert re.sub(r"\d\d:\d\d", "00:06", line) == WIDTHS[columns]
    shown.finish()


def test_no_more_than_all_of_the_time_is_waited(screen: Screen, clock: Clock) -> None:
    flow = SimpleNamespace(batch_size=32, waited_seconds=9.0)
    shown = Display("", 3, has_bar=False, flow=flow)
    clock.now += 2
    flow.waited_seconds += 1
    shown.advance(3, LOGS)
    flow.waited_seconds += 30  # until the data says that it has ended
    shown.finish(LOGS)
    assert "waiting on data 50 %" in screen.lines[0]


def test_a_terminal_that_becomes_narrower(
    screen: Screen, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = 100
    monkeypatch.setattr("tqdm.std._screen_shape_wrapper", lambda: lambda fp: (columns, 24))
    shown = Display("Epoch 1/3", 40, has_bar=True)
    for done, columns in ((1, 100), (2, 30)):  # noqa: B007  # read by the terminal
        clock.now += 1
        shown.advance(done, LOGS)
    # The line of 69 characters stands on three lines of 30 now: up two, and all below goes.
    assert screen.text.count("\x1b[2A\r\x1b[J\rEpoch 1/3 2/40") == 1
    shown.finish()
    assert screen.text.count("\x1b[J") == 1


def test_no_thread_is_left(screen: Screen, clock: Clock) -> None:
    before = set(threading.enumerate())
    shown = Display("", 4, has_bar=True)
    assert set(threading.enumerate()) <= before
    shown.finish()


def test_the_switch_for_bars_of_tqdm(
    screen: Screen, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TQDM_DISABLE", "1")
    shown = Display("Epoch 1/1", 4, has_bar=True)
    clock.now += 1
    shown.advance(1)
    shown.finish()
    assert plain(screen.lines) == ["Epoch 1/1 - 1/4 - _ - _/step"]


def test_to_the_log(screen: Screen, caplog: pytest.LogCaptureFixture, clock: Clock) -> None:
    laminar.utils.disable_interactive_logging()
    try:
        assert not laminar.utils.is_interactive_logging_enabled()
        with caplog.at_level(logging.INFO, "laminar"):
            linear().fit(X, Y, epochs=1)
    finally:
        laminar.utils.enable_interactive_logging()
    assert screen.text == ""
    assert [r.message.split(" - ")[:2] for r in caplog.records] == [["Epoch 1/1", "2/2"]]


# In fit, evaluate and predict


def test_fit_on_a_terminal(screen: Screen) -> None:
    linear().fit(X, Y, epochs=10, initial_epoch=8, validation_data=(X, Y))
    lines = plain(screen.lines)
    assert [line.split(" - loss")[0] for line in lines] == [
        "Epoch  9/10 - 2/2 - _ - _/step",
        "Epoch 10/10 - 2/2 - _ - _/step",
    ]
    assert all(re.search(r" - loss: 0\.\d{4} - val_loss: 0\.\d{4}$", line) for line in lines)


@pytest.mark.parametrize("verbose", [1, 2, "auto", True])
def test_fit_to_a_log_file(log_file: Screen, verbose: Any) -> None:
    linear().fit(X, Y, epochs=2, validation_data=(X, Y), verbose=verbose)
    assert log_file.text.count("\n") == 2
    assert "\r" not in log_file.text


def test_silence(screen: Screen) -> None:
    model = linear()
    model.fit(X, Y, verbose=0)
    model.fit(X, Y, verbose=0, callbacks=[ProgbarLogger()])
    model.evaluate(X, Y, verbose=0)
    model.predict(X, verbose=0)
    assert screen.text == ""


def test_lines_without_bars(screen: Screen) -> None:
    linear().fit(X, Y, verbose=2)
    assert "|" not in screen.text
    assert plain(screen.lines)[0].startswith("Epoch 1/1 - 2/2 - _ - _/step - loss: ")


def test_evaluate_and_predict(screen: Screen) -> None:
    model = linear()
    model.evaluate(X, Y)
    model.predict(X, batch_size=10)
    first, second = plain(screen.lines)
    assert re.fullmatch(r"Evaluate - 2/2 - _ - _/step - loss: \d.\d{4}", first)
    assert second == "Predict - 4/4 - _ - _/step"


def batches(fail_at: int | None = None) -> Iterator[Any]:
    for i in range(4):
        if i == fail_at:
            raise OSError("the disk is gone")
        yield X[:8], Y[:8]


def test_steps_are_counted_where_they_are_not_known(screen: Screen) -> None:
    class Unknown:
        def __iter__(self) -> Iterator[Any]:
            return batches()

    linear().fit(Unknown(), epochs=2)
    assert [line.split(" - ")[1] for line in screen.lines] == ["4 steps", "4/4"]


@pytest.mark.parametrize(
    ("call", "label"),
    [
        (lambda m, data: m.fit(data, epochs=2, steps_per_epoch=4), "Epoch 1/2"),
        (lambda m, data: m.evaluate(data, steps=4), "Evaluate"),
        (lambda m, data: m.predict(data, steps=4), "Predict"),
    ],
)
def test_an_error_leaves_the_terminal_on_a_new_line(screen: Screen, call: Any, label: str) -> None:
    model = linear()
    with pytest.raises(OSError, match="the disk is gone"):
        call(model, batches(fail_at=3))
    (line,) = plain(screen.lines)
    assert re.fullmatch(rf"{label} - 3/4 - _ - _/step( - loss: \S+)? - interrupted", line)
    assert screen.text.endswith("\n")


def test_validation_is_noted_on_the_bar(screen: Screen, clock: Clock) -> None:
    progress = ProgbarLogger()
    progress.set_params({"verbose": 1, "epochs": 1, "steps": 2})
    progress.set_model(FakeModel())
    progress.on_train_begin()
    progress.on_epoch_begin(0)
    progress.on_train_batch_end(1, {"loss": 1.0})
    clock.now += 1
    progress.on_test_begin()
    progress.on_test_batch_end(0, {"loss": 3.0})
    clock.now += 1
    progress.on_test_batch_end(6, {"loss": 3.0})
    (line,) = screen.lines
    assert line == "Epoch 1/1 2/2 |████████████████████| validating 7 - loss: 1.0000"
    progress.on_test_end({"loss": 3.0})
    progress.on_epoch_end(0, {"loss": 1.0, "val_loss": 3.0})
    progress.on_train_end()
    assert plain(screen.lines) == ["Epoch 1/1 - 2/2 - _ - _/step - loss: 1.0000 - val_loss: 3.0000"]


def test_callbacks_may_print_and_predict_after_an_epoch(screen: Screen) -> None:
    model = linear()

    def talk(epoch: int, logs: Any) -> None:
        print("printed", epoch, file=screen)
        model.predict(X)

    model.fit(X, Y, epochs=2, callbacks=[LambdaCallback(on_epoch_end=talk)])
    assert [line.split(" - ")[0] for line in screen.lines] == [
        "printed 0",
        "Predict",
        "Epoch 1/2",
        "printed 1",
        "Predict",
        "Epoch 2/2",
    ]


SECONDS = [
    (0, "0us"),
    (85e-6, "85us"),
    (0.0123, "12ms"),
    (3.44, "3.4s"),
    (125, "2:05"),
    (3725, "1:02:05"),
]


@pytest.mark.parametrize(("seconds", "text"), SECONDS)
def test_seconds(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


VALUES = [
    (0.5, "0.5000"),
    (0, "0.0000"),
    (1e-4, "1.0000e-04"),
    (123456.0, "1.2346e+05"),
    (float("nan"), "nan"),
    (np.float32(2), "2.0000"),
    (np.array([1.0, 2.0]), "[1. 2.]"),
    ("text", "text"),
]


@pytest.mark.parametrize(("value", "text"), VALUES)
def test_values(value: Any, text: str) -> None:
    assert format_values({"v": value}) == f" - v: {text}"
