"""The workloads: their names, their problems, and what right results look like."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from . import contractions, problems, rows, tasks, transfers
from .problems import CLASSES, Problem

# framework -> the module of `frameworks` that knows it, and the packages whose versions matter
FRAMEWORKS = {
    "laminar": ("in_laminar", ("laminar", "numpy", "llvmlite")),
    "torch": ("in_torch", ("torch",)),
    "torch-compile": ("in_torch_compile", ("torch",)),
    "jax": ("in_jax", ("jax", "jaxlib")),
    "keras": ("in_keras", ("keras", "jax", "jaxlib")),
    "keras-tensorflow": ("in_keras_tensorflow", ("keras", "tensorflow")),
    "tensorflow": ("in_tensorflow", ("tensorflow",)),
}
PEERS = tuple(name for name in FRAMEWORKS if name != "laminar")

# The loss of each of this many steps on one batch is compared.
CHECKED_STEPS = 3

GPT_WORDS, LARGE_GPT_WORDS, BERT_WORDS = 1024, 8192, 16384
_ROUNDING = 2.0**-8  # of bfloat16

Judge = Callable[[Sequence[float]], str | None]


def trains(losses: Sequence[float], classes: int = CLASSES, rounding: float = 0.0) -> str | None:
    """What is wrong with the losses of the first steps on one batch, if anything is.

    Steps may be smaller than what a loss is rounded by.
    """
    if not abs(losses[0] - math.log(classes)) < 0.3:
        return f"the first loss is {losses[0]:.4f}, not close to ln({classes})"
    if not losses[-1] < losses[0] * (1 + rounding):
        return f"the loss does not fall: {', '.join(f'{loss:.5f}' for loss in losses)}"
    return None


def is_finite(numbers: Sequence[float]) -> str | None:
    """Whether there are results at all; what they must be, the peers say."""
    return None if all(map(math.isfinite, numbers)) else f"results are not finite: {numbers}"


def has_learned(accuracy: Sequence[float]) -> str | None:
    """Far above one in ten, even after a single epoch."""
    return None if accuracy[0] > 0.5 else f"the test accuracy is {accuracy[0]:.2%}"


@dataclass(frozen=True)
class Workload:
    """A workload; `full` and `tiny` make its problem for measuring and for trying out.

    The numbers that a case gives as `checks` have to satisfy `judge`, and to be those of the peers
    up to `tolerance` (relative to the largest); None: they are random. What is measured is in
    `unit`: seconds or bytes. Of what moves `num_bytes`, the rate is shown too; `goal_seconds` is
    the time that it may take.
    """

    name: str
    title: str
    full: Callable[[], Problem]
    tiny: Callable[[], Problem]
    judge: Judge
    tolerance: float | None = 2e-4
    unit: str = "s"
    num_bytes: int | None = None
    goal_seconds: float | None = None

    def problem(self, tiny: bool) -> Problem:
        return self.tiny() if tiny else self.full()


def small_perceptron(batches: int) -> Callable[[], Problem]:
    return lambda: problems.perceptron((64, 32, CLASSES), batch=32, batches=batches)


def first_steps() -> Iterator[Workload]:
    """The first step of models that have been built, by whether there are caches."""
    for suffix, caches in ("", "caches"), ("-cold", "no caches"):
        yield Workload(
            f"first-step-mlp{suffix}",
            f"first step, MLP 784-512-512-10, fresh process, {caches}",
            large_perceptron(128, 1),
            lambda: problems.perceptron((8, 6, CLASSES), batch=4, batches=1),
            trains,
        )
        yield Workload(
            f"first-step-resnet20{suffix}",
            f"first step, ResNet-20, fresh process, {caches}",
            resnet_20(32, 1),
            lambda: problems.resnet(8, 1, batch=2, batches=1),
            trains,
        )


def large_perceptron(batch: int, batches: int) -> Callable[[], Problem]:
    return lambda: problems.perceptron((784, 512, 512, CLASSES), batch, batches)


def resnet_20(batch: int, batches: int) -> Callable[[], Problem]:
    return lambda: problems.resnet(32, 3, batch, batches)


def tiny_perceptron() -> Problem:
    return problems.perceptron((8, 6, CLASSES), batch=4, batches=3)


def tiny_resnet() -> Problem:
    return problems.resnet(8, 1, batch=2, batches=2)


def moved() -> Iterator[Workload]:
    """Tensors that come from another process, and calls of one."""
    for name, way in transfers.WAYS.items():
        yield Workload(
            name,
            way.title,
            partial(problems.numbers, count=way.num_bytes // 4),
            partial(problems.numbers, count=100),
            is_finite,
            num_bytes=way.num_bytes,
            goal_seconds=way.goal_seconds,
        )
    yield Workload(
        transfers.CALL, transfers.CALL_TITLE, problems.nothing, problems.nothing, is_finite
    )


def over_tasks() -> Iterator[Workload]:
    """Steps on clusters."""
    found = [
        Workload(
            name,
            title,
            problems.nothing,
            problems.nothing,
            is_finite,
            goal_seconds=tasks.GOALS.get(name),
        )
        for name, title in tasks.STEPS.items()
    ]
    found += [
        Workload(
            tasks.parameter_server(width),
            tasks.parameter_server_title(width),
            partial(problems.perceptron, (784, width, width, CLASSES), batch=128, batches=1),
            lambda: problems.perceptron((8, 6, CLASSES), batch=4, batches=1),
            trains,
        )
        for width in tasks.WIDTHS
    ]
    for one in found:
        yield one
        yield replace(one, name=one.name + tasks.OVER_TCP, title=tasks.over_tcp(one.title))
    for name, title in tasks.GRAPHS.items():
        full = partial(problems.numbers, count=tasks.NODES)
        tiny = partial(problems.numbers, count=10)
        yield Workload(name, title, full, tiny, is_finite, goal_seconds=tasks.GOALS.get(name))


def training() -> Iterator[Workload]:
    """Training steps in float32, and with products and convolutions of bfloat16; their memory."""
    found = [
        Workload(
            "train-mlp",
            "training step, MLP 784-512-512-10, Adam, batch 128",
            large_perceptron(128, 20),
            tiny_perceptron,
            trains,
        ),
        Workload(
            "train-convnet",
            "training step, convnet 28x28x1, Adam, batch 128",
            lambda: problems.convnet(28, (32, 64), 128, batch=128, batches=6),
            lambda: problems.convnet(8, (3, 4), 5, batch=4, batches=2),
            trains,
        ),
        Workload(
            "train-resnet20",
            "training step, ResNet-20 32x32x3, momentum, batch 32",
            resnet_20(32, 6),
            tiny_resnet,
            trains,
        ),
        Workload(
            "train-gpt",
            "training step, GPT, 4 layers of 128, 64 words, Adam, batch 32",
            lambda: problems.gpt(4, 128, 4, length=64, words=GPT_WORDS, batch=32, batches=3),
            lambda: problems.gpt(1, 8, 2, length=5, words=GPT_WORDS, batch=2, batches=2),
            partial(trains, classes=GPT_WORDS),
        ),
    ]
    recurrent = Workload(
        "train-lstm",
        "training step, LSTM of 128 over 50 steps, Adam, batch 32",
        lambda: problems.recurrent(128, 128, length=50, batch=32, batches=10),
        lambda: problems.recurrent(3, 4, length=5, batch=2, batches=2),
        trains,
    )
    yield from found
    yield recurrent
    for workload in (*found, recurrent):
        yield replace(
            workload,
            name=workload.name.replace("train", "memory"),
            title=workload.title.replace("training step", "peak memory of training"),
            unit="B",
        )
    yield replace(
        found[0], name="train-mlp-late", title=f"{found[0].title}, from step 3,000 on, rate 0.001"
    )
    for workload in found:
        classes = GPT_WORDS if workload.name == "train-gpt" else CLASSES
        yield replace(
            workload,
            name=f"{workload.name}-bf16",
            title=f"{workload.title}, bfloat16",
            judge=partial(trains, classes=classes, rounding=_ROUNDING),
            tolerance=_ROUNDING,
        )


def checkpoints() -> Iterator[Workload]:
    """Twelve matrices of 2048 x 2048 saved and loaded; hooks."""
    for name, title in (
        ("save-50m", "save of 50M parameters (torch: safetensors; Keras: .weights.h5)"),
        ("save-50m-blocking", "what a save of 50M parameters takes of training"),
        ("load-50m", "load of 50M parameters (torch: safetensors; Keras: .weights.h5)"),
    ):
        full, tiny = partial(problems.parameters, 12, 2048), partial(problems.parameters, 3, 4)
        yield Workload(name, title, full, tiny, is_finite)
    yield Workload(
        "idle-hook",
        "a hook that does nothing, step of a MonitoredSession",
        problems.nothing,
        problems.nothing,
        is_finite,
    )


WORKLOADS = {
    workload.name: workload
    for workload in [
        Workload("import", "import", problems.nothing, problems.nothing, is_finite),
        Workload("first-add", "import, then a + b", problems.nothing, problems.nothing, is_finite),
        Workload("add", "eager a + b of 4x4", problems.nothing, problems.nothing, is_finite),
        Workload(
            "session-run",
            "Session.run of a 4x4 product",
            problems.nothing,
            problems.nothing,
            is_finite,
        ),
        Workload(
            "executor-chain",
            "node of a chain of 10,000 identities",
            problems.nothing,
            problems.nothing,
            is_finite,
        ),
        Workload(
            "executor-fan-out",
            "node of a fan-out of 10,000 identities",
            problems.nothing,
            problems.nothing,
            is_finite,
        ),
        Workload(
            "while-loop",
            "iteration of a while_loop in a function",
            problems.nothing,
            problems.nothing,
            is_finite,
        ),
        Workload(
            "fit-step",
            "step of fit, MLP 64-32-10, batch 32",
            small_perceptron(200),
            tiny_perceptron,
            trains,
        ),
        Workload(
            "fit-call", "fit() beyond its steps", small_perceptron(101), tiny_perceptron, trains
        ),
        Workload(
            "predict-row", "predict() of one row", small_perceptron(1), tiny_perceptron, is_finite
        ),
        *training(),
        *first_steps(),
        Workload(
            "train-lstm-256",
            "training step, LSTM of 256 over 100 steps, Adam, batch 64",
            lambda: problems.recurrent(64, 256, length=100, batch=64, batches=3),
            lambda: problems.recurrent(3, 4, length=5, batch=2, batches=2),
            trains,
        ),
        Workload(
            "train-embeddings",
            "training step, embeddings of 1M x 32, 5,120 of them a step, Adam",
            lambda: problems.bag(1_000_000, 32, length=20, batch=256, batches=4),
            lambda: problems.bag(20, 4, length=3, batch=4, batches=2),
            trains,
        ),
        Workload(
            "train-embeddings-lazy",
            "the same with Adam of the rows that are looked up",
            lambda: problems.bag(1_000_000, 32, length=20, batch=256, batches=4),
            lambda: problems.bag(20, 4, length=3, batch=4, batches=2),
            trains,
        ),
        Workload(
            "train-gpt-98m",
            "training step, GPT, 12 layers of 768 (98M weights), 64 words, Adam, batch 4",
            lambda: problems.gpt(12, 768, 12, length=64, words=LARGE_GPT_WORDS, batch=4, batches=1),
            lambda: problems.gpt(1, 8, 2, length=5, words=LARGE_GPT_WORDS, batch=2, batches=1),
            partial(trains, classes=LARGE_GPT_WORDS),
            tolerance=1e-3,  # Adam takes gradients of next to nothing, which differ, for full steps
        ),
        Workload(
            "train-bert-110m",
            "training step, BERT, 12 layers of 768 (110M weights), 128 words, Adam, batch 4",
            lambda: problems.bert(12, 768, 12, length=128, words=BERT_WORDS, batch=4, batches=1),
            lambda: problems.bert(1, 8, 2, length=5, words=BERT_WORDS, batch=2, batches=1),
            partial(trains, classes=BERT_WORDS),
            tolerance=1e-3,
        ),
        Workload(
            "train-vit",
            "training step, ViT, 12 layers of 192, 224x224x3 by 16x16, Adam, batch 8",
            lambda: problems.vit(12, 192, 3, size=224, patch=16, batch=8),
            lambda: problems.vit(1, 8, 2, size=8, patch=4, batch=2),
            trains,
            tolerance=1e-3,
        ),
        Workload(
            "infer-mlp-1",
            "inference, MLP 784-512-512-10, batch 1",
            large_perceptron(1, 1),
            tiny_perceptron,
            is_finite,
        ),
        Workload(
            "infer-mlp-256",
            "inference, MLP 784-512-512-10, batch 256",
            large_perceptron(256, 1),
            tiny_perceptron,
            is_finite,
        ),
        Workload(
            "infer-resnet20-1",
            "inference, ResNet-20, batch 1",
            resnet_20(1, 1),
            tiny_resnet,
            is_finite,
        ),
        Workload(
            "infer-resnet20-32",
            "inference, ResNet-20, batch 32",
            resnet_20(32, 1),
            tiny_resnet,
            is_finite,
        ),
        *(
            Workload(
                rows.sized(name, millions),
                f"{title}, {millions}M numbers in rows of 1024",
                partial(problems.matrix, rows=millions * 1024),
                partial(problems.matrix, rows=4),
                is_finite,
            )
            for name, title in rows.TITLES.items()
            for millions in rows.MILLIONS
        ),
        *(
            Workload(name, title, full, tiny, is_finite)
            for name, title, full, tiny in contractions.workloads()
        ),
        *moved(),
        *over_tasks(),
        Workload(
            "input-images",
            "batch of 128 of 60,000 images 28x28, shuffled, normalised",
            lambda: problems.images(60_000, 28, batch=128),
            lambda: problems.images(50, 4, batch=8),
            is_finite,
        ),
        *checkpoints(),
        Workload(
            "digits",
            "digits example, 30 epochs, fresh process",
            lambda: problems.digits(epochs=30),
            lambda: problems.digits(epochs=1),
            has_learned,
            tolerance=None,
        ),
        Workload(
            "digits-epoch",
            "digits example, 1 epoch, fresh process",
            lambda: problems.digits(epochs=1),
            lambda: problems.digits(epochs=1),
            has_learned,
            tolerance=None,
        ),
    ]
}
