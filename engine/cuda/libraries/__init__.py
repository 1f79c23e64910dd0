"""What libraries of NVIDIA's compute in compiled steps, where they are installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...cuda_program import LibraryCall, Product
from ..interface import Gpu
from .cublaslt import plan_product
from .cudnn import plan_convolution


def plan_call(
    gpu: Gpu, call: LibraryCall, addresses: Sequence[int]
) -> Callable[[int], None] | None:
    """What runs a library call at addresses, on a stream; None: generated kernels compute it."""
    if isinstance(call.parameters, Product):
        return plan_product(gpu, call.parameters, addresses)
    return plan_convolution(gpu, call.name, call.parameters, addresses)
