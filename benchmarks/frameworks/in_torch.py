"""The workloads in PyTorch: images in the layout "channels last", fused optimizers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from ..cases import Case, FirstUse, Late, Program
from ..inputs import SCALE, Epoch
from ..problems import Array, Block, Problem, Weights
from ..rows import ends
from ..workloads import CHECKED_STEPS
from . import torch_checkpoints, torch_contractions
from .torch_gpt import Attention, Gpt, Vit
from .torch_recurrent import Lstm, recurrent
from .torch_rows import rows_cases

Network = Callable[[Problem], Any]


class ImageFlatten(nn.Module):  # type: ignore[misc]  # torch is Any to the type checker
    """Flatten as Keras does, channels last; no copy in that layout."""

    def forward(self, x: Any) -> Any:
        return x.permute(0, 2, 3, 1).flatten(1)


class Residual(nn.Module):  # type: ignore[misc]  # torch is Any to the type checker
    """Two convolutions around a shortcut."""

    def __init__(self, block: Block, channels: int) -> None:
        super().__init__()
        width = block.width
        self.conv1, self.norm1 = normalized(channels, width, stride=block.stride)
        self.conv2, self.norm2 = normalized(width, width)
        self.is_projecting = block.stride > 1
        if self.is_projecting:
            self.conv3, self.norm3 = normalized(channels, width, size=1, stride=block.stride)

    def forward(self, x: Any) -> Any:
        y = functional.relu(self.norm1(self.conv1(x)), inplace=True)
        y = self.norm2(self.conv2(y))
        if self.is_projecting:
            x = self.norm3(self.conv3(x))
        return functional.relu(y + x, inplace=True)


def normalized(channels: int, width: int, *, size: int = 3, stride: int = 1) -> tuple[Any, Any]:
    """A convolution and its batch normalization, with Keras's constants."""
    padding = size // 2
    conv = nn.Conv2d(channels, width, size, stride=stride, padding=padding, bias=False)
    return conv, nn.BatchNorm2d(width, eps=1e-3, momentum=0.01)


def perceptron(problem: Problem) -> Any:
    """Dense layers with ReLU between."""
    net = nn.Sequential()
    *_, last = problem.weights
    for name, (kernel, _) in problem.weights.items():
        net.add_module(name, nn.Linear(*kernel.shape))
        if name != last:
            net.add_module(f"{name}-relu", nn.ReLU())
    return net


def convnet(problem: Problem) -> Any:
    """Two convolutions, pooling, two dense layers."""
    net = nn.Sequential()
    for name in ("conv1", "conv2"):
        net.add_module(name, nn.Conv2d(*problem.weights[name][0].shape[2:], 3))
        net.add_module(f"{name}-relu", nn.ReLU())
    net.add_module("pool", nn.MaxPool2d(2))
    net.add_module("flatten", ImageFlatten())
    net.add_module("dense1", nn.Linear(*problem.weights["dense1"][0].shape))
    net.add_module("dense1-relu", nn.ReLU())
    net.add_module("dense2", nn.Linear(*problem.weights["dense2"][0].shape))
    return net


def resnet(problem: Problem) -> Any:
    """The residual network for small images."""
    net = nn.Sequential()
    conv, norm = normalized(3, 16)
    net.add_module("conv0", conv)
    net.add_module("norm0", norm)
    net.add_module("relu", nn.ReLU())
    channels = 16
    for block in problem.blocks:
        net.add_module(block.name, Residual(block, channels))
        channels = block.width
    net.add_module("pool", nn.AdaptiveAvgPool2d(1))
    net.add_module("flatten", ImageFlatten())
    net.add_module("dense", nn.Linear(channels, problem.units("dense")))
    return net


def bag(problem: Problem, *, sparse: bool = False) -> Any:
    """The mean of embeddings, whose gradient may be sparse, and a dense layer."""
    net = nn.Sequential()
    net.add_module("words", nn.EmbeddingBag(*problem.weights["words"][0].shape, sparse=sparse))
    net.add_module("dense", nn.Linear(problem.weights["words"][0].shape[1], problem.units("dense")))
    return net


def build(network: Network, problem: Problem) -> Any:
    """The network with the weights of the problem, "channels last"."""
    net = network(problem)
    load(net, problem.weights)
    return net.to(memory_format=torch.channels_last)


def load(net: Any, weights: Weights) -> None:
    """Set the weights of a network from Keras's arrays."""
    for name, (first, *others) in weights.items():
        module = net.get_submodule(name.replace("-", "."))
        if isinstance(module, Attention | Lstm):
            module.load(first, *others)
            continue
        values = [first, *others]
        names = ["weight", "bias", "running_mean", "running_var"]
        if first.ndim == 4:
            values[0] = first.transpose(3, 2, 0, 1)
        if isinstance(module, nn.Linear):
            values[0] = first.T
        with torch.no_grad():
            for target, value in zip(names, values, strict=False):
                getattr(module, target).copy_(torch.from_numpy(value.copy()))


def tensor(x: Array) -> Any:
    """The rows as torch takes them; images become "channels last" views."""
    rows = torch.from_numpy(x)
    return rows.permute(0, 3, 1, 2) if x.ndim == 4 else rows


class Training(Case):
    """Steps of a plain training loop."""

    def __init__(
        self,
        network: Network,
        optimizer: Callable[..., Any],
        problem: Problem,
        is_compiled: bool,
        *,
        is_mixed: bool = False,
    ) -> None:
        net = build(network, problem)
        self.optimizer = optimizer(net.parameters())
        self.x, self.y = tensor(problem.x), torch.from_numpy(problem.y).long()
        self.batch, self.steps = problem.batch, problem.batches

        def loss_of(x: Any, y: Any) -> Any:
            with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
                return functional.cross_entropy(net(x).flatten(0, -2), y.flatten())

        self.loss_of = torch.compile(loss_of) if is_compiled else loss_of

    def checks(self) -> list[float]:
        first = self.x[: self.batch], self.y[: self.batch]
        return [float(self.step(*first)) for _ in range(CHECKED_STEPS)]

    def run(self) -> None:
        for start in range(0, len(self.x), self.batch):
            stop = start + self.batch
            self.step(self.x[start:stop], self.y[start:stop])

    def step(self, x: Any, y: Any) -> Any:
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss_of(x, y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


class SparseTraining(Training):
    """Steps of a loop that updates the rows of a table that a batch has taken, and no others."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        (table, *others) = [p for group in self.optimizer.param_groups for p in group["params"]]
        self.optimizer = quick_adam(others)
        self.of_rows = torch.optim.SparseAdam([table], lr=1e-3, eps=1e-7)

    def step(self, x: Any, y: Any) -> Any:
        self.of_rows.zero_grad(set_to_none=True)
        loss = super().step(x, y)
        self.of_rows.step()
        return loss


class Inference(Case):
    """One batch, from a NumPy array to a NumPy array."""

    def __init__(self, network: Network, problem: Problem, is_compiled: bool) -> None:
        net = build(network, problem).eval()
        # Frozen: the weights are constants, packed beforehand as the products want them.
        self.net = torch.compile(net, options={"freezing": True}) if is_compiled else net
        self.x = problem.x[: problem.batch]

    def checks(self) -> list[float]:
        return ends(self.logits())

    def run(self) -> None:
        self.logits()

    def logits(self) -> Any:
        with torch.inference_mode():
            return self.net(tensor(self.x)).numpy()


class Add(Case):
    """`a + b` of two small tensors."""

    steps = 100

    def __init__(self) -> None:
        self.a, self.b = torch.ones((4, 4)), torch.full((4, 4), 2.0)

    def checks(self) -> list[float]:
        return [float(number) for number in (self.a + self.b).ravel()]

    def run(self) -> None:
        a, b = self.a, self.b
        for _ in range(self.steps):
            a + b


lazy_bag = partial(bag, sparse=True)
mixed = partial(Training, is_mixed=True)
sgd = partial(torch.optim.SGD, lr=1e-3, fused=True)
momentum = partial(torch.optim.SGD, lr=1e-3, momentum=0.9, fused=True)
adam = partial(torch.optim.Adam, lr=1e-5, eps=1e-7, fused=True)
quick_adam = partial(adam, lr=1e-3)


def network_cases(is_compiled: bool) -> dict[str, Callable[[Problem], Case]]:
    """The workloads with a network, run as they are or by torch.compile."""
    return {
        "fit-step": lambda p: Training(perceptron, sgd, p, is_compiled),
        "train-mlp": lambda p: Training(perceptron, adam, p, is_compiled),
        "train-mlp-late": lambda p: Late(Training(perceptron, quick_adam, p, is_compiled)),
        "train-convnet": lambda p: Training(convnet, adam, p, is_compiled),
        "train-resnet20": lambda p: Training(resnet, momentum, p, is_compiled),
        "train-gpt": lambda p: Training(Gpt, adam, p, is_compiled),
        "train-mlp-bf16": lambda p: mixed(perceptron, adam, p, is_compiled),
        "train-convnet-bf16": lambda p: mixed(convnet, adam, p, is_compiled),
        "train-resnet20-bf16": lambda p: mixed(resnet, momentum, p, is_compiled),
        "train-gpt-bf16": lambda p: mixed(Gpt, adam, p, is_compiled),
        "train-lstm": lambda p: Training(recurrent, adam, p, is_compiled),
        "train-lstm-256": lambda p: Training(recurrent, adam, p, is_compiled),
        "train-embeddings": lambda p: Training(bag, quick_adam, p, is_compiled),
        "train-embeddings-lazy": lambda p: SparseTraining(lazy_bag, quick_adam, p, is_compiled),
        "train-gpt-98m": lambda p: Training(Gpt, adam, p, is_compiled),
        "train-bert-110m": lambda p: Training(Gpt, adam, p, is_compiled),
        "train-vit": lambda p: Training(Vit, adam, p, is_compiled),
        "infer-mlp-1": lambda p: Inference(perceptron, p, is_compiled),
        "infer-mlp-256": lambda p: Inference(perceptron, p, is_compiled),
        "infer-resnet20-1": lambda p: Inference(resnet, p, is_compiled),
        "infer-resnet20-32": lambda p: Inference(resnet, p, is_compiled),
        **rows_cases(is_compiled),
    }


def image_batches(problem: Problem) -> Epoch:
    """The images by a DataLoader, which normalises each of them as its examples do."""

    class Normalised(torch.utils.data.TensorDataset):  # type: ignore[misc]  # torch is Any here
        def __getitem__(self, index: int) -> Any:
            x, y = super().__getitem__(index)
            return x * float(SCALE), y

    data = Normalised(torch.from_numpy(problem.x), torch.from_numpy(problem.y))
    return Epoch(problem, torch.utils.data.DataLoader(data, problem.batch, shuffle=True))


CASES: dict[str, Callable[[Problem], Case]] = {
    **network_cases(is_compiled=False),
    "import": lambda _: FirstUse("import torch"),
    "first-add": lambda _: FirstUse("import torch; a = torch.ones((4, 4)); a + a"),
    "add": lambda _: Add(),
    **torch_checkpoints.CASES,
    **torch_contractions.CASES,
    "input-images": image_batches,
    "digits": lambda p: Program("-m", "benchmarks.frameworks.digits_torch", str(p.epochs)),
}
