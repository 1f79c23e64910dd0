"""Activation functions: each a row of its value, its gradient, and the gradient's slope.

The gradient is an expression of dy and the output y where that is enough, so that the input need
not be kept for the backward pass, and else of dy and the input x.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

from ... import ops
from ...graph import FLOATING, REAL, DType, OpView, Tensor
from ..core.basic import ones_like, zeros_like
from ..core.elementwise import elementwise
from ..core.op_def import Grads, OpDef
from ..math.arithmetic import absolute, minimum, sign


def _activation(
    type: str,
    doc: str,
    value: Callable[..., Any],
    *,
    of: str,
    back: Callable[..., Any],
    bend: Callable[..., Tensor] | None = None,
    dtypes: Collection[DType] = FLOATING,
) -> OpDef:
    """Define the ops `type`, a function of one number, and `type` + "Grad", its gradient.

    Args:
        type: the op's name.
        doc: its definition.
        value: the scalar expression `value(s, x, *, attribute)`.
        of: what the gradient is computed from besides dy: "x", the input, or "y", the output.
        back: the scalar expression `back(s, dy, x or y, *, attribute)` of the gradient.
        bend: `bend(x or y, *, attribute)`, the derivative of `back` for dy = 1, on tensors, so that
            gradients of any order exist; None where it is 0 almost everywhere.
        dtypes: element types.
    """
    grad_op = elementwise(
        f"{type}Grad",
        f"The gradient for the input of {type}, given dy and {of}.",
        scalar=back,
        grad=lambda view, ddx: _grad_of_grad(grad_op, bend, view, ddx),
    )

    def grad(view: OpView, dy: Tensor) -> Grads:
        return (grad_op(dy, view.outputs[0] if of == "y" else view.inputs[0], **view.attrs),)

    return elementwise(type, doc, scalar=value, grad=grad, dtypes=dtypes)


def _grad_of_grad(
    grad_op: OpDef, bend: Callable[..., Tensor] | None, view: OpView, ddx: Tensor
) -> Grads:
    dy, v = view.inputs
    return (
        grad_op(ddx, v, **view.attrs),
        None if bend is None else ddx * dy * bend(v, **view.attrs),
    )


def _between(s: Any, low: float, v: Any, high: float, inside: Any) -> Any:
    """`inside` where low < v < high, else 0."""
    return s.where(s.logical_and(v > low, v < high), inside, 0)


# Piecewise linear

relu: OpDef = _activation(
    "Relu",
    "y = max(x, 0). The slope at 0 is 0.",
    lambda s, x: s.max(x, 0),
    of="y",
    back=lambda s, dy, y: s.where(y > 0, dy, 0),
    dtypes=REAL,
)
relu6: OpDef = _activation(
    "Relu6",
    "y = min(max(x, 0), 6). The slope at 0 and 6 is 0.",
    lambda s, x: s.min(s.max(x, 0), 6),
    of="y",
    back=lambda s, dy, y: _between(s, 0, y, 6, dy),
    dtypes=REAL,
)
hard_tanh: OpDef = _activation(
    "HardTanh",
    "y = min(max(x, -1), 1).",
    lambda s, x: s.min(s.max(x, -1), 1),
    of="y",
    back=lambda s, dy, y: _between(s, -1, y, 1, dy),
)
hard_sigmoid: OpDef = _activation(
    "HardSigmoid",
    "y = min(max(x + 3, 0), 6) / 6.",
    lambda s, x: s.min(s.max(x + 3, 0), 6) / 6,
    of="y",
    back=lambda s, dy, y: _between(s, 0, y, 1, dy / 6),
)
sparse_sigmoid: OpDef = _activation(
    "SparseSigmoid",
    "y = min(max((x + 1) / 2, 0), 1).",
    lambda s, x: s.min(s.max(0.5 * x + 0.5, 0), 1),
    of="y",
    back=lambda s, dy, y: _between(s, 0, y, 1, 0.5 * dy),
)


def _leaky_relu(s: Any, x: Any, *, negative_slope: float = 0.2) -> Any:
    return s.where(x > 0, x, negative_slope * x)


leaky_relu: OpDef = _activation(
    "LeakyRelu",
    "y = x where x > 0, negative_slope * x elsewhere.",
    _leaky_relu,
    of="x",
    back=lambda s, dy, x, *, negative_slope=0.2: s.where(x > 0, dy, negative_slope * dy),
)


def _hard_shrink(s: Any, x: Any, *, threshold: float = 0.5) -> Any:
    return s.where(s.abs(x) <= threshold, 0, x)


def _soft_shrink(s: Any, x: Any, *, threshold: float = 0.5) -> Any:
    return x - s.min(s.max(x, -threshold), threshold)


def _shrink_back(s: Any, dy: Any, x: Any, *, threshold: float = 0.5) -> Any:
    return s.where(s.abs(x) <= threshold, 0, dy)


hard_shrink: OpDef = _activation(
    "HardShrink",
    "y = 0 where |x| <= threshold, x elsewhere.",
    _hard_shrink,
    of="x",
    back=_shrink_back,
)
soft_shrink: OpDef = _activation(
    "SoftShrink",
    "y = 0 where |x| <= threshold, elsewhere x moved towards 0 by it.",
    _soft_shrink,
    of="x",
    back=_shrink_back,
)


def _threshold(s: Any, x: Any, *, threshold: float, value: float) -> Any:
    return s.where(x <= threshold, value, x)


def _threshold_back(s: Any, dy: Any, x: Any, *, threshold: float, value: float) -> Any:
    return s.where(x <= threshold, 0, dy)


threshold: OpDef = _activation(
    "Threshold",
    "y = x where x > threshold, `value` elsewhere.",
    _threshold,
    of="x",
    back=_threshold_back,
)

# Exponential below 0


def _elu(s: Any, x: Any, *, alpha: float = 1.0) -> Any:
    return s.where(x > 0, x, alpha * s.expm1(s.min(x, 0)))


def _elu_back(s: Any, dy: Any, x: Any, *, alpha: float = 1.0) -> Any:
    return s.where(x > 0, dy, dy * alpha * s.exp(s.min(x, 0)))


def _elu_bend(x: Tensor, *, alpha: float) -> Tensor:
    return ops.compare.where(x > 0, zeros_like(x), alpha * ops.elementary.exp(_not_positive(x)))


def _not_positive(x: Tensor) -> Tensor:
    return minimum(x, zeros_like(x))  # exp of what is above would overflow, and is not wanted


elu: OpDef = _activation(
    "Elu",
    "y = x where x > 0, alpha * (exp(x) - 1) elsewhere. Clevert et al., 2016, arXiv:1511.07289.",
    _elu,
    of="x",
    back=_elu_back,
    bend=_elu_bend,
)


def _celu(s: Any, x: Any, *, alpha: float = 1.0) -> Any:
    return s.where(x > 0, x, alpha * s.expm1(s.min(x, 0) / alpha))


def _celu_back(s: Any, dy: Any, x: Any, *, alpha: float = 1.0) -> Any:
    return s.where(x > 0, dy, dy * s.exp(s.min(x, 0) / alpha))


def _celu_bend(x: Tensor, *, alpha: float) -> Tensor:
    return ops.compare.where(
        x > 0, zeros_like(x), ops.elementary.exp(_not_positive(x) / alpha) / alpha
    )


celu: OpDef = _activation(
    "Celu",
    "y = max(x, 0) + min(0, alpha * (exp(x / alpha) - 1)). Barron, 2017, arXiv:1704.07483.",
    _celu,
    of="x",
    back=_celu_back,
    bend=_celu_bend,
)

# Klambauer et al., "Self-normalizing neural networks", 2017, arXiv:1706.02515, appendix A.1.
_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805
_SELU_FLOOR = _SELU_SCALE * _SELU_ALPHA

selu: OpDef = _activation(
    "Selu",
    "y = scale * x where x > 0, scale * alpha * (exp(x) - 1) elsewhere.",
    lambda s, x: s.where(x > 0, _SELU_SCALE * x, _SELU_FLOOR * s.expm1(s.min(x, 0))),
    of="y",
    back=lambda s, dy, y: dy * s.where(y > 0, _SELU_SCALE, y + _SELU_FLOOR),
    bend=lambda y: ops.compare.where(y > 0, zeros_like(y), ones_like(y)),
)

# Smooth

softplus: OpDef = _activation(
    "Softplus",
    "y = log(1 + exp(x)).",
    lambda s, x: s.max(x, 0) + s.log1p(s.exp(-s.abs(x))),
    of="y",
    back=lambda s, dy, y: -dy * s.expm1(-y),
    bend=lambda y: ops.elementary.exp(-y),
)
log_sigmoid: OpDef = _activation(
    "LogSigmoid",
    "y = log(1 / (1 + exp(-x))).",
    lambda s, x: s.min(x, 0) - s.log1p(s.exp(-s.abs(x))),
    of="y",
    back=lambda s, dy, y: -dy * s.expm1(y),
    bend=lambda y: -ops.elementary.exp(y),
)
softsign: OpDef = _activation(
    "Softsign",
    "y = x / (1 + |x|).",
    lambda s, x: x / (1 + s.abs(x)),
    of="x",
    back=lambda s, dy, x: dy / (1 + s.abs(x)) / (1 + s.abs(x)),  # a square could overflow
    bend=lambda x: -2 * sign(x) / (1 + absolute(x)) ** 3,
)
tanh_shrink: OpDef = _activation(
    "TanhShrink",
    "y = x - tanh(x).",
    lambda s, x: x - s.tanh(x),
    of="x",
    back=lambda s, dy, x: dy * s.tanh(x) * s.tanh(x),
    bend=lambda x: 2 * ops.elementary.tanh(x) * (1 - ops.elementary.tanh(x) ** 2),
)


def _silu_back(s: Any, dy: Any, x: Any) -> Any:
    p = s.sigmoid(x)
    return dy * p * (1 + x * (1 - p))


def _silu_bend(x: Tensor) -> Tensor:
    p = ops.elementary.sigmoid(x)
    bend: Tensor = p * (1 - p) * (2 + x * (1 - 2 * p))
    return bend


silu: OpDef = _activation(
    "Silu",
    "y = x * sigmoid(x). Ramachandran et al., 2017, arXiv:1710.05941.",
    lambda s, x: x * s.sigmoid(x),
    of="x",
    back=_silu_back,
    bend=_silu_bend,
)


def _gelu_back(s: Any, dy: Any, x: Any, *, approximate: bool = True) -> Any:
    return dy * s.gelu_slope(x, approximate)


def _gelu_bend(x: Tensor, *, approximate: bool) -> Tensor:
    square = x * x
    if not approximate:
        exact: Tensor = ops.gelu.DENSITY * ops.elementary.exp(-0.5 * square) * (2 - square)
        return exact
    p = ops.elementary.sigmoid(x * (ops.gelu.SCALE + ops.gelu.CUBIC * square))
    rise = ops.gelu.SCALE + 3 * ops.gelu.CUBIC * square  # the slope of sigmoid's argument
    bend: Tensor = (
        p * (1 - p) * (2 * rise + 6 * ops.gelu.CUBIC * square + x * rise**2 * (1 - 2 * p))
    )
    return bend


gelu: OpDef = _activation(
    "Gelu",
    "y = x * (1 + erf(x / sqrt(2))) / 2; `approximate`, with tanh(sqrt(2 / pi) * (x + 0.044715 "
    "x**3)) in place of erf.",
    lambda s, x, *, approximate=True: s.gelu(x, approximate),
    of="x",
    back=_gelu_back,
    bend=_gelu_bend,
)


def _squareplus(s: Any, x: Any, *, b: float = 4.0) -> Any:
    root = s.hypot(x, math.sqrt(b))
    return s.where(x > 0, 0.5 * (x + root), 0.5 * b / (root - x))  # x + root cancels below 0


def _squareplus_back(s: Any, dy: Any, x: Any, *, b: float = 4.0) -> Any:
    return dy * _squareplus(s, x, b=b) / s.hypot(x, math.sqrt(b))


def _squareplus_bend(x: Tensor, *, b: float) -> Tensor:
    bend: Tensor = 0.5 * b / ops.elementary.sqrt(x * x + b) ** 3
    return bend


squareplus: OpDef = _activation(
    "Squareplus",
    "y = (x + sqrt(x**2 + b)) / 2, b > 0. Barron, 2021, arXiv:2112.11687.",
    _squareplus,
    of="x",
    back=_squareplus_back,
    bend=_squareplus_bend,
)

# Piecewise quadratic

hard_silu: OpDef = _activation(
    "HardSilu",
    "y = x * min(max(x + 3, 0), 6) / 6. Howard et al., 2019, arXiv:1905.02244, section 5.2.",
    lambda s, x: x * (s.min(s.max(x + 3, 0), 6) / 6),
    of="x",
    back=lambda s, dy, x: s.where(x >= 3, dy, _between(s, -3, x, 3, dy * (x / 3 + 0.5))),
    bend=lambda x: ops.compare.where(absolute(x) < 3, ones_like(x) / 3, zeros_like(x)),
)
sparse_plus: OpDef = _activation(
    "SparsePlus",
    "y = 0 where x <= -1, x where x >= 1, (x + 1)**2 / 4 between.",
    lambda s, x: s.where(x <= -1, 0, s.where(x < 1, 0.25 * (x + 1) * (x + 1), x)),
    of="x",
    back=lambda s, dy, x: dy * s.min(s.max(0.5 * x + 0.5, 0), 1),
    bend=lambda x: ops.compare.where(absolute(x) < 1, 0.5 * ones_like(x), zeros_like(x)),
)
