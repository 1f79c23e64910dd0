"""The rules: against Keras 3 (reference.npz), against the papers in NumPy, eager against traced."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from laminar import ops, optimizers
from laminar.engine.functions import function
from laminar.engine.state import Variable

from .make_reference import Array, make_optimizer, run_case

REFERENCE = np.load(Path(__file__).with_name("reference.npz"))
ABOUT: dict[str, Any] = json.loads(str(REFERENCE["about"]))
CASES: dict[str, Any] = ABOUT["cases"]
LAMINAR = SimpleNamespace(Variable=Variable, ops=ops, optimizers=optimizers)


def split(flat: Array) -> list[Array]:
    """The three variables that a row of the file holds."""
    found, start = [], 0
    for shape in ABOUT["names"].values():
        size = int(np.prod(shape))
        found.append(flat[start : start + size].reshape(shape))
        start += size
    return found


START = split(REFERENCE["start"])
GRADIENTS = [split(row) for row in REFERENCE["gradients"]]


@pytest.fixture
def expect_warning() -> Callable[[str], Any]:
    def expected(name: str) -> Any:
        if "missing" in name:
            return pytest.warns(UserWarning, match="opt: no gradient for bias")
        return warnings.catch_warnings()

    return expected


@pytest.mark.parametrize("name", CASES)
def test_matches_keras(name: str, expect_warning: Callable[[str], Any]) -> None:
    kind, arguments, described, config = CASES[name]
    with expect_warning(name):
        values, slots, own, own_config = run_case(LAMINAR, kind, arguments, START, GRADIENTS)
    expected = REFERENCE[f"{name}/values"]
    np.testing.assert_allclose(values, expected, rtol=2e-5, atol=2e-6)
    expected_slots = REFERENCE[f"{name}/slots"]
    if kind == "Adafactor":  # Keras also stores what it computes anew from rows and columns
        expected_slots = expected_slots * kept(described)
    np.testing.assert_allclose(slots, expected_slots, rtol=5e-5, atol=2e-6)
    assert [d[1:] for d in own] == [d[1:] for d in described]
    named = [d[0] for d in own]
    keras_names = [d[0] for d in described]
    # Keras leaves three of its optimizer variables without the optimizer's name before theirs.
    unnamed = {"variable": "opt/u_product", "bias": "opt/bias"}
    assert named == [unnamed.get(n, n) for n in keras_names]
    own_config.pop("inner_optimizer", None)
    assert own_config == config
    assert list(own_config) == list(config)


def kept(described: list[Any]) -> Array:
    """1 for the elements of Adafactor's slots that hold state, 0 for those that hold none."""
    sizes = [int(np.prod(shape)) for _, shape, _ in described]
    unused = [path.endswith("_velocity") and len(shape) > 1 for path, shape, _ in described]
    return np.repeat(1.0 - np.array(unused), sizes)


# The papers, in float64. Each takes (w, list of gradients) and gives w after them.


def sgd(w: Array, gradients: list[Array], momentum: float, nesterov: bool) -> Array:
    v = np.zeros_like(w)
    for g in gradients:
        v = momentum * v - RATE * g
        w = w + (momentum * v - RATE * g if nesterov else v)
    return w


def adam(w: Array, gradients: list[Array], decay: float = 0.0) -> Array:
    m, v = np.zeros_like(w), np.zeros_like(w)
    for t, g in enumerate(gradients, start=1):
        w = w - RATE * decay * w
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g**2
        # Kingma and Ba, section 2: epsilon_hat = epsilon * sqrt(1 - beta_2**t) in algorithm 1.
        epsilon = 1e-7 / np.sqrt(1 - 0.999**t)
        w = w - RATE * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + epsilon)
    return w


def rmsprop(w: Array, gradients: list[Array], centered: bool, momentum: float) -> Array:
    v, mean, step = np.zeros_like(w), np.zeros_like(w), np.zeros_like(w)
    for g in gradients:
        v = 0.9 * v + 0.1 * g**2
        mean = 0.9 * mean + 0.1 * g
        deviation = v - mean**2 if centered else v
        step = momentum * step + RATE * g / np.sqrt(deviation + 1e-7)
        w = w - step
    return w


def adagrad(w: Array, gradients: list[Array]) -> Array:
    s = np.full_like(w, 0.1)
    for g in gradients:
        s = s + g**2
        w = w - RATE * g / np.sqrt(s + 1e-7)
    return w


def lamb(w: Array, gradients: list[Array]) -> Array:
    m, v = np.zeros_like(w), np.zeros_like(w)
    for t, g in enumerate(gradients, start=1):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g**2
        r = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-7)
        w = w - RATE * np.linalg.norm(w) / np.linalg.norm(r) * r
    return w


RATE = 0.125  # exact in float32, in which the optimizer keeps it
PAPERS = [
    pytest.param("SGD", {}, lambda w, g: sgd(w, g, 0.0, False), id="sgd"),
    pytest.param("SGD", {"momentum": 0.9}, lambda w, g: sgd(w, g, 0.9, False), id="momentum"),
    pytest.param(
        "SGD",
        {"momentum": 0.9, "nesterov": True},
        lambda w, g: sgd(w, g, 0.9, True),
        id="nesterov",
    ),
    pytest.param("Adam", {}, adam, id="adam"),
    pytest.param("AdamW", {"weight_decay": 0.1}, lambda w, g: adam(w, g, 0.1), id="adamw"),
    pytest.param("RMSprop", {}, lambda w, g: rmsprop(w, g, False, 0.0), id="rmsprop"),
    pytest.param(
        "RMSprop",
        {"centered": True, "momentum": 0.8},
        lambda w, g: rmsprop(w, g, True, 0.8),
        id="rmsprop-centered-momentum",
    ),
    pytest.param("Adagrad", {}, adagrad, id="adagrad"),
    pytest.param("Lamb", {}, lamb, id="lamb"),
]


@pytest.mark.parametrize(("kind", "arguments", "paper"), PAPERS)
def test_matches_paper(
    kind: str, arguments: dict[str, Any], paper: Callable[[Array, list[Array]], Array]
) -> None:
    rng = np.random.default_rng(3)
    w = rng.normal(size=(3, 4))
    gradients = [rng.normal(size=w.shape) for _ in range(20)]
    variable = Variable(w, name="w")
    optimizer = getattr(optimizers, kind)(learning_rate=RATE, **arguments)
    for g in gradients:
        optimizer.apply([g], [variable])
    assert variable.dtype == "float64"
    assert all(v.dtype == "float64" for v in optimizer.variables[2:])
    np.testing.assert_allclose(variable.numpy(), paper(w, gradients), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in CASES if "missing" not in n])
def test_traced_is_eager(name: str) -> None:
    """A traced step with fed gradients gives the bits of the eager one, and is traced once."""
    kind, arguments, *_ = CASES[name]
    eager, traced = (Run(kind, arguments) for _ in range(2))
    step = function(traced.step, jit_compile=False)
    for row in GRADIENTS[:8]:
        eager.step(*map(ops.convert_to_tensor, row))
        step(*map(ops.convert_to_tensor, row))
        for a, b in zip(eager.state(), traced.state(), strict=True):
            np.testing.assert_array_equal(a, b)
    assert step.trace_count == 1


class Run:
    """An optimizer on variables of its own."""

    def __init__(self, kind: str, arguments: dict[str, Any]) -> None:
        self.variables = [
            Variable(w, name=name) for name, w in zip(ABOUT["names"], START, strict=True)
        ]
        self.optimizer = make_optimizer(LAMINAR, kind, arguments)
        self.optimizer.build(self.variables)

    def step(self, *grads: Any) -> None:
        self.optimizer.apply(grads, self.variables)

    def state(self) -> Iterator[Array]:
        return (v.numpy() for v in [*self.variables, *self.optimizer.variables])


def test_adafactors_rate_falls_with_time() -> None:
    """min(learning_rate, 1 / sqrt(t)), with relative_step and without; Keras 3.15's numbers."""
    optimizer = optimizers.Adafactor(
        0.5,
        beta_2_decay=-0.65,
        epsilon_1=1e-15,
        epsilon_2=1e-4,
        clip_threshold=0.9,
        relative_step=False,
    )
    x = Variable(np.ones(10, "float32"))
    optimizer.apply([np.full(10, 0.01)], [x])
    for expected in (0.55, 0.3031, 0.1671, 0.0923, 0.0554):
        np.testing.assert_allclose(x.numpy()[0], expected, atol=1e-4)
        optimizer.apply([np.arange(0.1, 1.1, 0.1)], [x])
