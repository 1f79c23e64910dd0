"""Ndtri: the quantiles of the normal distribution."""

from __future__ import annotations

import math

from ...graph import FLOATING
from ..core.elementwise import elementwise
from ..core.op_def import OpDef
from .elementary import exp

_ROOT = math.sqrt(math.tau)

normal_quantile: OpDef = elementwise(
    "Ndtri",
    "The z below which a normal distribution has the share p; infinite for 0 and 1.",
    scalar=lambda s, p: s.normal_quantile(p),
    grad=lambda op, dy: (dy * _ROOT * exp(0.5 * op.outputs[0] * op.outputs[0]),),
    dtypes=FLOATING,
)
