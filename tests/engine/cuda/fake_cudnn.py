"""The frontend of cuDNN on the memory of a fake GPU: graphs of one convolution, by NumPy.

It reads and writes memory by the dimensions and strides that it is given, refuses what the real one
refuses of these, and runs on the stream that was set, so that it is captured as a kernel is.
"""

from __future__ import annotations

import itertools
from enum import Enum
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

from .fake_gpu import FakeGpu, array_at


class DataType(Enum):
    FLOAT = "float32"
    HALF = "float16"
    BFLOAT16 = "bfloat16"

    @property
    def numpy(self) -> Any:
        return np.dtype(getattr(ml_dtypes, self.value, self.value))


class Note(Enum):
    NONDETERMINISTIC = 1
    REDUCED_PRECISION_REDUCTION = 2
    TENSOR_CORE = 3
    DOWN_CONVERT_INPUTS = 4


class Tensor:
    def __init__(self, dtype: DataType | None, dim: list[int], stride: list[int]) -> None:
        self.dtype, self.dim, self.stride = dtype, dim, stride
        self.is_output = False

    def set_output(self, value: bool) -> Tensor:
        self.is_output = value
        return self

    def set_data_type(self, dtype: DataType) -> Tensor:
        self.dtype = dtype
        return self

    def set_dim(self, dim: list[int]) -> Tensor:
        self.dim = dim
        return self

    def set_stride(self, stride: list[int]) -> Tensor:
        self.stride = stride
        return self

    def check(self) -> None:
        assert len(self.dim) in (4, 5), "images and filters have two or three axes in space"
        order = sorted(range(len(self.dim)), key=lambda i: -self.stride[i])
        step = 1
        for i in reversed(order):
            assert self.dim[i] == 1 or self.stride[i] == step, "it is packed"
            step *= self.dim[i]
        assert self.stride[1] == 1, "the channels are side by side"

    def at(self, address: int) -> Any:
        assert self.dtype is not None
        flat = array_at(address, [int(np.prod(self.dim))], self.dtype.numpy)
        steps = tuple(n * flat.itemsize for n in self.stride)
        return np.lib.stride_tricks.as_strided(flat, self.dim, steps)


class Graph:
    def __init__(self, library: FakeCudnn, **options: Any) -> None:
        assert options["compute_data_type"] is DataType.FLOAT
        assert options["handle"] == library.handle
        self.library = library
        self.steps: dict[str, Any] = {}
        self.kind, self.tensors = "", list[Tensor]()
        self.notes: set[Note] = set()

    def tensor(self, name: str, data_type: DataType, dim: list[int], stride: list[int]) -> Tensor:
        return Tensor(data_type, dim, stride)

    def _made(self, kind: str, a: Tensor, b: Tensor, steps: dict[str, Any]) -> Tensor:
        self.kind, self.steps, result = kind, steps, Tensor(None, [], [])
        self.tensors = [a, b, result]
        return result

    def conv_fprop(self, image: Tensor, weight: Tensor, **steps: Any) -> Tensor:
        return self._made("forward", image, weight, steps)

    def conv_dgrad(self, loss: Tensor, filter: Tensor, **steps: Any) -> Tensor:
        return self._made("input", loss, filter, steps)

    def conv_wgrad(self, image: Tensor, loss: Tensor, **steps: Any) -> Tensor:
        return self._made("filters", image, loss, steps)

    def validate(self) -> None:
        for tensor in self.tensors:
            tensor.check()
        assert self.tensors[2].is_output

    def build_operation_graph(self) -> None:
        self.library.built += 1

    def create_execution_plans(self, modes: list[str]) -> None:
        assert modes

    def deselect_numeric_notes(self, notes: list[Note]) -> None:
        self.notes |= {*notes}

    def deselect_workspace_greater_than(self, num_bytes: int) -> None:
        assert num_bytes > self.library.workspace_bytes

    def check_support(self) -> None:
        if not self.library.has_engines:
            raise self.library.cudnnGraphNotSupportedError

    def build_plans(self) -> None:
        assert {Note.NONDETERMINISTIC, Note.REDUCED_PRECISION_REDUCTION} <= self.notes
        if self.tensors[0].dtype is DataType.FLOAT:
            assert {Note.TENSOR_CORE, Note.DOWN_CONVERT_INPUTS} <= self.notes

    def get_workspace_size(self) -> int:
        return self.library.workspace_bytes

    def execute(self, places: dict[Tensor, int], workspace: int, handle: int) -> None:
        assert handle == self.library.handle
        self.library.run(lambda: self._compute(places, workspace))

    def _compute(self, places: dict[Tensor, int], workspace: int) -> None:
        if self.library.workspace_bytes:
            array_at(workspace, [self.library.workspace_bytes], "u1")[:] = 255
        a, b, c = (tensor.at(places[tensor]) for tensor in self.tensors)
        # x: (images, channels, *dims), w: (filters, channels of a group, *window), y alike.
        x, w, y = {"forward": (a, b, c), "input": (c, b, a), "filters": (a, c, b)}[self.kind]
        strides, dilations = self.steps["stride"], self.steps["dilation"]
        pads = list(zip(self.steps["pre_padding"], self.steps["post_padding"], strict=True))
        padded = np.pad(x.astype(float), [(0, 0), (0, 0), *pads])
        if self.kind == "input":
            padded[...] = 0
        found: Any = np.zeros(c.shape) if self.kind != "input" else padded
        groups = x.shape[1] // w.shape[1]
        inside, outside = w.shape[1], w.shape[0] // groups
        for g, tap in product(range(groups), product(*map(range, w.shape[2:]))):
            cells = tuple(
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, n, s in zip(tap, dilations, y.shape[2:], strides, strict=True)
            )
            into, out = slice(g * inside, (g + 1) * inside), slice(g * outside, (g + 1) * outside)
            part: Any = (slice(None), into, *cells)
            at: Any = (out, slice(None), *tap)
            if self.kind == "forward":
                found[:, out] += np.einsum("nc...,kc->nk...", padded[part], w[at].astype(float))
            elif self.kind == "input":
                found[part] += np.einsum("nk...,kc->nc...", y[:, out].astype(float), w[at])
            else:
                cut = padded[part].reshape(*padded[part].shape[:2], -1)
                slopes = y[:, out].astype(float).reshape(*cut.shape[:1], outside, -1)
                found[at] += np.einsum("nkp,ncp->kc", slopes, cut)
        if self.kind == "input":
            inner: Any = [slice(b, b + n) for (b, _), n in zip(pads, x.shape[2:], strict=True)]
            found = found[(slice(None), slice(None), *inner)]
        c[...] = found


class FakeCudnn:
    """`cudnn`, on one GPU."""

    data_type, numerical_note = DataType, Note
    heur_mode = Enum("heur_mode", "A FALLBACK")

    class cudnnGraphNotSupportedError(Exception):  # noqa: N801  # its name
        """The frontend's error."""

    handle = 77
    workspace_bytes = 512
    has_engines = True

    def __init__(self, gpu: FakeGpu) -> None:
        self.gpu = gpu
        self.built = 0
        self._numbers = itertools.count(1 << 20)
        self._stream = 0

    def create_handle(self) -> int:
        return self.handle

    def set_stream(self, handle: int, stream: int) -> None:
        assert handle == self.handle
        self._stream = stream

    def pygraph(self, **options: Any) -> Graph:
        return Graph(self, **options)

    def run(self, compute: Any) -> None:
        number = next(self._numbers)
        self.gpu._functions[number] = "cudnn", lambda *_: compute()
        self.gpu.launch(number, (1, 1, 1), (1, 1, 1), 0, (), self._stream)
