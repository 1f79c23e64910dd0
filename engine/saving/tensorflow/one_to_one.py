"""Ops of TensorFlow that are one op of laminar, with the same inputs and without attributes."""

from __future__ import annotations

from ...ops.core.op_def import OpDef
from ...ops.core.registry import lookup

_SAME = (
    "Abs Acos Acosh Add Asin Asinh Atan Atan2 Atanh BitwiseAnd BitwiseOr BitwiseXor Ceil Cos "
    "Cosh Digamma DivNoNan Equal Erf Erfc Exp Expm1 Floor FloorDiv FloorMod Greater GreaterEqual "
    "IsFinite IsInf IsNan Less LessEqual Lgamma Log Log1p LogicalAnd LogicalNot LogicalOr "
    "Maximum Minimum Mul MulNoNan Neg NotEqual OnesLike Pow Reciprocal Relu Relu6 Rsqrt Sigmoid "
    "Sign Sin Sinh Softplus Softsign Sqrt Square StopGradient Sub Tan Tanh Xdivy Xlogy"
)
_OTHERS = {
    "AddV2": "Add",
    "Div": "Div",
    "Inv": "Reciprocal",
    "Mod": "TruncMod",
    "NoOp": "NoOp",
    "RealDiv": "Div",
    "Rint": "Round",
    "Round": "Round",
    "SelectV2": "Where",
}


def _there(names: dict[str, str]) -> dict[str, OpDef]:
    return {name: lookup(own) for name, own in names.items()}


ONE_TO_ONE: dict[str, OpDef] = _there({**{name: name for name in _SAME.split()}, **_OTHERS})
