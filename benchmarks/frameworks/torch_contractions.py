"""Products and convolutions in PyTorch; images, filters and gradients "channels last"."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from .. import contractions
from ..contractions import Contraction, Products, Shape
from ..problems import Array, Problem


def _at_once(_: Any) -> None:
    """Nothing is left to wait for on a CPU."""


def products(problem: Problem) -> Products:
    a, b = torch.from_numpy(problem.x), torch.from_numpy(problem.weights["b"][0])
    pairs = [(a, b), (a.T, b), (a, b.T), (a.T, b.T)]
    return Products(lambda: [torch.mm(x, y) for x, y in pairs], _at_once)


def convolution(shape: Shape, problem: Problem) -> Contraction:
    def tensor(array: Array, *axes: int) -> Any:
        turned = torch.from_numpy(array).permute(*axes)
        return turned.contiguous(memory_format=torch.channels_last)

    x, dy = tensor(problem.x, 0, 3, 1, 2), tensor(problem.weights["gradient"][0], 0, 3, 1, 2)
    w = tensor(problem.weights["filters"][0], 3, 2, 0, 1)
    x.requires_grad_()
    w.requires_grad_()

    def compute() -> list[Any]:
        y = functional.conv2d(x, w, stride=shape.stride, padding=shape.padding)
        dx, dw = torch.autograd.grad(y, [x, w], dy)
        return [y.detach().permute(0, 2, 3, 1), dx.permute(0, 2, 3, 1), dw.permute(2, 3, 1, 0)]

    return Contraction(compute, _at_once)


CASES = contractions.cases(products, convolution)
