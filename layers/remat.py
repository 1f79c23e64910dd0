"""Layers whose intermediate values are computed again for the gradient, instead of being kept."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NamedTuple

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.functions import remat as remat_function
from laminar.tree import flatten

from .context import current
from .symbolic import any_symbolic

_MODES = ("full", "activations", "larger_than", "list_of_layers", None)


class RematMode(NamedTuple):
    """What a scope asks for; see `RematScope`."""

    mode: str | None
    output_size_threshold: int
    layer_names: tuple[str, ...]


class _Scopes(threading.local):
    def __init__(self) -> None:
        self.active: list[RematMode] = []


_scopes = _Scopes()


class RematScope:
    """Layers made inside keep less for the gradient: they compute it again.

    It is the place where a layer is made that counts, not where it is called. Scopes nest; the
    innermost counts.

    Args:
        mode: "full": the inputs of each layer are all that it keeps. "larger_than": so does a layer
            whose outputs have more than `output_size_threshold` elements, unknown sizes counted as
            1. "list_of_layers": so do those called `layer_names`. "activations": what a layer's
            `activation` computes is computed again. None: nothing is, inside of another scope.
        output_size_threshold: see "larger_than".
        layer_names: see "list_of_layers".

    Raises:
        InvalidArgumentError: another mode.

    Source: Chen et al., "Training deep nets with sublinear memory cost", 2016, arXiv:1604.06174.

    Examples:
        >>> with laminar.RematScope(mode="full"):
        ...     layer = layers.Dense(2)
        >>> layer(np.ones((1, 3))).shape
        (1, 2)
    """

    def __init__(
        self,
        mode: str | None = "full",
        output_size_threshold: int = 1024,
        layer_names: Sequence[str] | None = None,
    ) -> None:
        if mode not in _MODES:
            raise InvalidArgumentError(
                f"RematScope: mode must be one of {', '.join(map(repr, _MODES))}, got {mode!r}"
            )
        if isinstance(layer_names, str):
            raise InvalidArgumentError(
                f"RematScope: layer_names must be a list of names, got {layer_names!r}",
                remedy=f"write layer_names=[{layer_names!r}]",
            )
        self.mode = mode
        self.output_size_threshold = output_size_threshold
        self.layer_names = list(layer_names or ())

    def __enter__(self) -> RematScope:
        scope = RematMode(self.mode, self.output_size_threshold, tuple(self.layer_names))
        _scopes.active.append(scope)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _scopes.active.pop()


def get_current_remat_mode() -> RematMode | None:
    """What the innermost scope asks for; None outside of all."""
    return _scopes.active[-1] if _scopes.active else None


def remat(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives what `f` gives, and computes it again for the gradient.

    Between the forward and the backward pass only its inputs, and the variables it uses, are kept.
    What has an effect is done once: a seed is drawn once (so dropout takes the same places away
    both times), statistics are updated once.

    Args:
        f: a function of tensors, or a layer. Deep models save most where `f` is a part of them:
            with n layers in parts of sqrt(n), about 2 sqrt(n) results are held instead of n.

    Returns:
        A function of the same arguments, with the same values and gradients.

    Raises:
        InvalidArgumentError: `f` cannot be called; (when called) an argument is symbolic.

    Source: Chen et al., "Training deep nets with sublinear memory cost", 2016, arXiv:1604.06174.

    Examples:
        >>> square = laminar.remat(lambda x: ops.square(ops.sin(x)))
        >>> laminar.grad(square)(ops.array(0.0))
        Tensor(0., shape=(), dtype=float32)
    """
    if not callable(f):
        raise InvalidArgumentError(
            f"remat: expected a function or a layer, got {f!r}",
            remedy="give the function itself: remat(f), not remat(f(x))",
        )
    inner = _with_losses(f, _always)

    # A layer has no name of a function.
    @functools.wraps(f, assigned=[a for a in functools.WRAPPER_ASSIGNMENTS if hasattr(f, a)])
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if any_symbolic(args, kwargs):
            raise InvalidArgumentError(
                "remat: a symbolic tensor of the functional API has no gradient",
                remedy="make the layers inside `with RematScope():`, or call remat(f) in the "
                "call() of a layer",
            )
        return inner(*args, **kwargs)

    return wrapped


def rematerialized(
    layer: Any, call: Callable[..., Any], mode: RematMode | None
) -> Callable[..., Any]:
    """What a layer or op computes with, `call`, as the scope in which it was made asks."""
    if mode is None or mode.mode is None:
        return call
    if mode.mode == "activations":
        has_one = callable(getattr(layer, "activation", None))
        return _with_activation(layer, call) if has_one else call
    if mode.mode == "list_of_layers":
        return _with_losses(call, _always) if layer.name in mode.layer_names else call
    if mode.mode == "full":
        return _with_losses(call, _always)
    return _with_losses(call, lambda result: _size(result) > mode.output_size_threshold)


def _with_losses(call: Callable[..., Any], wanted: Callable[[Any], bool]) -> Callable[..., Any]:
    """`call` recomputed; the losses that layers add in it are among its results."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        outer = current.added_losses
        added: list[Any] = []
        current.added_losses = added
        try:
            again = remat_function(call, lambda result: [*flatten(result), *added], wanted)
            return again(*args, **kwargs)
        finally:
            current.added_losses = outer
            if outer is not None:
                outer.extend(added)

    return wrapped


def _with_activation(layer: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        own = layer.activation
        layer.activation = remat_function(own)
        try:
            return call(*args, **kwargs)
        finally:
            layer.activation = own

    return wrapped


def _always(result: Any) -> bool:
    return True


def _size(result: Any) -> int:
    """How many elements there are in tensors of which unknown sizes count as 1."""
    return sum(math.prod(n or 1 for n in y.shape) for y in flatten(result) if hasattr(y, "shape"))
