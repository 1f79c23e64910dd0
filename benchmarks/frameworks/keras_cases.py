"""The workloads that read the same in laminar and in Keras."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..cases import Case, Late
from ..overhead import Add, FitCall, PredictRow
from ..problems import Problem
from .keras_networks import (
    Inference,
    Training,
    bag,
    convnet,
    gpt,
    perceptron,
    recurrent,
    resnet,
    vit,
)

Cases = dict[str, Callable[[Problem], Case]]


def cases(k: Any) -> Cases:
    """By name, what prepares a workload in `k`, one of the two modules."""
    rules, mixed = k.optimizers, "mixed_bfloat16"
    return {
        "add": lambda _: Add(k),
        "fit-step": lambda p: Training(k, perceptron, rules.SGD(1e-3), p),
        "fit-call": lambda p: FitCall(k, p),
        "predict-row": lambda p: PredictRow(k, p),
        "train-mlp": lambda p: Training(k, perceptron, rules.Adam(1e-5), p),
        "train-mlp-late": lambda p: Late(Training(k, perceptron, rules.Adam(1e-3), p)),
        "train-convnet": lambda p: Training(k, convnet, rules.Adam(1e-5), p),
        "train-resnet20": lambda p: Training(k, resnet, rules.SGD(1e-3, 0.9), p),
        "train-gpt": lambda p: Training(k, gpt, rules.Adam(1e-5), p),
        "train-mlp-bf16": lambda p: Training(k, perceptron, rules.Adam(1e-5), p, mixed),
        "train-convnet-bf16": lambda p: Training(k, convnet, rules.Adam(1e-5), p, mixed),
        "train-resnet20-bf16": lambda p: Training(k, resnet, rules.SGD(1e-3, 0.9), p, mixed),
        "train-gpt-bf16": lambda p: Training(k, gpt, rules.Adam(1e-5), p, mixed),
        "train-lstm": lambda p: Training(k, recurrent, rules.Adam(1e-5), p),
        "train-lstm-256": lambda p: Training(k, recurrent, rules.Adam(1e-5), p),
        "train-embeddings": lambda p: Training(k, bag, rules.Adam(1e-3), p),
        "train-gpt-98m": lambda p: Training(k, gpt, rules.Adam(1e-5), p),
        "train-bert-110m": lambda p: Training(k, gpt, rules.Adam(1e-5), p),
        "train-vit": lambda p: Training(k, vit, rules.Adam(1e-5), p),
        "infer-mlp-1": lambda p: Inference(k, perceptron, p),
        "infer-mlp-256": lambda p: Inference(k, perceptron, p),
        "infer-resnet20-1": lambda p: Inference(k, resnet, p),
        "infer-resnet20-32": lambda p: Inference(k, resnet, p),
    }
