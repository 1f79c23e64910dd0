"""All that the course of a training depends on: taken down, and set again.

Variables of the model, its metrics and its optimizers; random generators, also those of NumPy and
Python; where the data stands; what the callbacks keep.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from laminar.callbacks import Callback
from laminar.engine.errors import DataLossError, FailedPreconditionError, LaminarError
from laminar.engine.ops.state.undo import UndoLog
from laminar.engine.saving import stored_value
from laminar.engine.source import warn
from laminar.engine.state import Variable
from laminar.optimizers import Optimizer
from laminar.random.seeds import (
    global_seed_generator,
    sequence_state,
    set_sequence_state,
)
from laminar.tree import flatten

from .data import ArrayData, Epochs

# What taking apart a structure that nobody vouches for may raise.
_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def optimizers_of(model: Any) -> list[Any]:
    """The optimizers among the attributes of a model: one from `compile`, or several of its own."""
    found = (part for value in vars(model).values() for part in flatten(value))
    return list({id(part): part for part in found if isinstance(part, Optimizer)}.values())


def variables_of(model: Any) -> list[Variable]:
    """Every variable that a step of training may read or change, each once."""

    def all_of_them() -> Iterator[Variable]:
        yield from model.variables
        for metric in model.metrics:
            yield from metric.variables
        for optimizer in optimizers_of(model):
            yield from optimizer.variables
        yield global_seed_generator().state

    return list({id(v): v for v in all_of_them()}.values())


class Snapshot:
    """The values of all variables of a model, to be set again."""

    def __init__(self, model: Any) -> None:
        self._variables = variables_of(model)
        self._values = [v.numpy() for v in self._variables]

    def restore(self) -> None:
        """Set the variables to the values that they had."""
        for variable, value in zip(self._variables, self._values, strict=True):
            variable.assign(value)


def undone_on_failure(model: Any, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A step that runs op by op as one that changes nothing if it fails, as a traced one does."""

    def run(batch: Any) -> Any:
        log, stores = UndoLog(), [v.store for v in variables_of(model) if v.graph is None]
        log.begins(stores)
        try:
            return step(batch)
        except BaseException:
            log.ends(stores)
            log.undo()
            raise

    return run


def take(model: Any, passes: Epochs, callbacks: list[Callback]) -> dict[str, Any]:
    """The state of a training, as data; the arrays of variables are theirs, not copies."""
    return {
        "variables": [stored_value(v) for v in variables_of(model)],
        "random": random_state(),
        "data": _data_form(passes) | {"position": passes.position},
        "callbacks": [[type(c).__name__, dict(c.get_state())] for c in callbacks],
        "stop_training": bool(model.stop_training),
    }


def check(state: Any) -> None:
    """See that a state has the form that `take` and `Backup.write` give it.

    Raises:
        DataLossError: it has another.
    """
    try:
        counts = [state["epoch"], state["step"], state["steps"]]
        position = state["data"]["position"]
        counts += [position[name] for name in ("passes", "taken", "total", "epochs", "in_epoch")]
        is_whole = (
            all(type(count) is int and count >= 0 for count in counts)
            and position["epochs"] <= state["epoch"] + 1
            and all(isinstance(value, np.ndarray) for value in state["variables"])
            and all(type(k) is str and isinstance(kept, dict) for k, kept in state["callbacks"])
            and isinstance(state["logs"], dict)
            and isinstance(state["stop_training"], bool)
            and "place" in position
            and "seed" in state["data"]
        )
        _set_random_state(
            state["random"],
            random.Random().setstate,
            random.Random().setstate,
            np.random.RandomState().set_state,
        )
    except _MALFORMED as cause:
        raise DataLossError(f"it is not a state of a training: {cause!r}") from cause
    if not is_whole:
        raise DataLossError("it is not a state of a training")


def put(state: Mapping[str, Any], model: Any, callbacks: list[Callback]) -> None:
    """Set what `take` took, but for the position in the data.

    The variables change last: an error leaves them as they were.

    Args:
        state: that `check` let pass.

    Raises:
        FailedPreconditionError: the model or its optimizer is another one.
        DataLossError: a callback cannot take what is kept for it.
    """
    variables = variables_of(model)
    values = state["variables"]
    if len(variables) != len(values):
        raise _differs(f"{len(values)} variables, this training has {len(variables)}")
    for variable, value in zip(variables, values, strict=True):
        if value.shape != tuple(variable.shape) or str(value.dtype) != str(variable.spec.dtype):
            raise _differs(
                f"a variable {value.dtype}{list(value.shape)} where this training has "
                f"{variable.path!r} {variable.spec}"
            )
    _put_callbacks(state["callbacks"], callbacks)  # the last that may refuse what it gets
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
    model.stop_training = state["stop_training"]
    set_random_state(state["random"])


def seek(state: Mapping[str, Any], passes: Epochs, *, inside: bool) -> None:
    """Go to the place in the data that `take` took down.

    Raises:
        FailedPreconditionError: the data has another form.
        DataLossError: the data has no such place.
    """
    saved = state["data"]
    for name, value in _data_form(passes).items():
        if name != "seed" and saved.get(name) != value:
            raise _differs(f"{name}={saved.get(name)}, this training has {name}={value}")
    passes.data.seed = saved["seed"]
    try:
        passes.seek(saved["position"], inside=inside)
    except LaminarError:
        raise
    except _MALFORMED as cause:
        raise DataLossError(f"fit: resume: the place in the data is damaged: {cause!r}") from cause


def _data_form(passes: Epochs) -> dict[str, Any]:
    data = passes.data
    form: dict[str, Any] = {"steps_per_epoch": passes.steps, "seed": data.seed}
    if isinstance(data, ArrayData):
        form |= {
            "examples": data.size,
            "batch_size": data.batch_size,
            "shuffle": data.shuffle,
        }
    return form


def _differs(text: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"fit: resume: the folder holds a training with {text}",
        remedy="go on with the same model, compile() and data, or choose an empty folder",
    )


def _put_callbacks(saved: list[Any], callbacks: list[Callback]) -> None:
    """Each callback takes the state of the one that stood in its place, if it is of its class."""
    waiting = list(saved)
    for callback in callbacks:
        name = type(callback).__name__
        found = next((i for i, (kind, _) in enumerate(waiting) if kind == name), None)
        if found is not None:
            try:
                callback.set_state(waiting.pop(found)[1])
            except LaminarError:
                raise
            except _MALFORMED as cause:
                raise DataLossError(
                    f"fit: resume: the state of {name} is damaged: {cause!r}",
                    remedy="choose an empty folder, or leave the callback out",
                ) from cause
        elif callback.get_state():
            warn(f"fit: resume: the folder has no state of {name}; it begins anew")


def random_state() -> dict[str, Any]:
    """Where the random sequences of laminar, Python and NumPy stand, but for those in variables."""
    kind, keys, *rest = np.random.get_state(legacy=True)
    return {
        "sequence": sequence_state(),
        "python": random.getstate(),
        "numpy": [kind, np.asarray(keys), *rest],
    }


def set_random_state(state: Mapping[str, Any]) -> None:
    """Go on where `random_state` was called."""
    _set_random_state(state, set_sequence_state, random.setstate, np.random.set_state)


def _set_random_state(
    state: Mapping[str, Any],
    set_sequence: Callable[[Any], None],
    set_python: Callable[[Any], None],
    set_numpy: Callable[[Any], None],
) -> None:
    for put_state, (version, numbers, gauss) in (
        (set_sequence, state["sequence"]),
        (set_python, state["python"]),
    ):
        put_state((version, tuple(numbers), gauss))
    kind, keys, *rest = state["numpy"]
    set_numpy((kind, keys, *rest))
