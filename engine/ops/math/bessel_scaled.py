"""BesselIe: the modified Bessel functions of the first kind, scaled."""

from __future__ import annotations

from typing import Any

from ...graph import FLOATING, OpView, Tensor
from ..core.elementwise import elementwise
from ..core.op_def import Grads, OpDef
from .arithmetic import sign


def _scaled(s: Any, x: Any, *, order: int) -> Any:
    return s.bessel_ie(order, x)


def _scaled_grad(op: OpView, dy: Tensor) -> Grads:
    # that of BesselI, less what the factor exp(-|x|) adds
    (x,), order, y = op.inputs, op.attrs["order"], op.outputs[0]
    above = bessel_ie(x, order=order + 1)
    slope = above if order == 0 else 0.5 * (bessel_ie(x, order=order - 1) + above)
    return (dy * (slope - sign(x) * y),)


bessel_ie: OpDef = elementwise(
    "BesselIe",
    "exp(-|x|) times the modified Bessel function of the first kind, of a whole order >= 0.",
    scalar=_scaled,
    grad=_scaled_grad,
    dtypes=FLOATING,
)


def i0e(x: Tensor) -> Tensor:
    """exp(-|x|) I(x) of order 0."""
    return bessel_ie(x, order=0)


def i1e(x: Tensor) -> Tensor:
    """exp(-|x|) I(x) of order 1."""
    return bessel_ie(x, order=1)
