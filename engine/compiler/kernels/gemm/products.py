"""Plans of matrix products, whatever they multiply."""

from __future__ import annotations

from ...ir.kernel_target import Target
from ...ir.launch import Epilogue, Launch, Matrix
from ..bf16.pair_products import plan_pair_products
from .gemm import plan_gemm
from .operand_format import Factors


def plan_product(
    a: Matrix,
    b: Matrix,
    c: Matrix,
    rows: int,
    columns: int,
    inner: int,
    factors: Factors,
    target: Target,
    *,
    batch: tuple[int, ...] = (),
    epilogue: Epilogue | None = None,
) -> list[Launch]:
    """See plan_gemm, or plan_pair_products for pairs; `inner` counts numbers."""
    sizes = rows, columns, inner
    if factors.unit is None:
        return plan_gemm(a, b, c, *sizes, factors.dtype, target, batch=batch, epilogue=epilogue)
    rest = target.threads, factors.unit
    return plan_pair_products(a, b, c, *sizes, *rest, batch=batch, epilogue=epilogue)
