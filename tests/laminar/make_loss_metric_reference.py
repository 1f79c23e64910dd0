"""Write loss_metric_reference.json: what Keras gives for the cases of loss_metric_cases.py.

Run it from the repository's root where Keras 3 is installed:

    KERAS_BACKEND=torch python -m tests.laminar.make_loss_metric_reference
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import keras
import numpy as np

from .loss_metric_cases import ARGUMENTS, FUNCTIONS, METRICS, OBJECTS, Case, input_name

FILE = Path(__file__).with_name("loss_metric_reference.json")
rng = np.random.default_rng(7)


def decimals(*shape: int, low: float = 0.0, high: float = 1.0) -> Any:
    """Random numbers that JSON holds exactly as float32 reads them back."""
    return np.round(rng.uniform(low, high, shape), 3).astype("float32")


def make_inputs() -> dict[str, Any]:
    """The arrays that the cases name."""
    logits = decimals(4, 3, low=-3, high=3)
    embeddings = rng.normal(size=(6, 4))
    embeddings /= np.linalg.norm(embeddings, axis=-1, keepdims=True)
    classes = np.array([0, 2, 1, 1])
    steps = rng.integers(0, 3, (4, 5))
    zeros_ones = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0], [0, 0, 1]], "float32")
    exp = np.exp(logits)
    return {
        "values": decimals(4, 3),
        "values_2": decimals(4, 3),
        "large": np.array([[100.0, -100.0, 0.0]] * 4, "float32"),
        "zeros": np.zeros((4, 3), "float32"),
        "quarters": np.round(decimals(4, 3) * 4) / 4,
        "one_hot": np.eye(3, dtype="float32")[classes],
        "probabilities": np.round(exp / exp.sum(-1, keepdims=True), 3),
        "logits": logits,
        "signs": np.where(zeros_ones == 1, 1.0, -1.0),
        "zeros_ones": zeros_ones,
        "ones_zeros": 1 - zeros_ones,
        "classes": classes,
        "classes_column": classes[:, None],
        "holes": np.array([0, -1, 2, 1]),
        "ranking": np.array([[0, 1, 2], [0, 1, 2], [2, 1, 0], [2, 0, 1]]),
        "sequence": decimals(4, 5, 2),
        "sequence_2": decimals(4, 5, 2),
        "steps": steps,
        "steps_2": rng.integers(0, 3, (4, 5)),
        "steps_column": steps[..., None],
        "sequence_logits": decimals(4, 5, 3, low=-3, high=3),
        "wide": decimals(4, 5, 9),
        "weights": np.array([1.0, 0.5, 2.0, 0.0], "float32"),
        "weights_column": np.array([[1.0], [0.5], [2.0], [0.0]], "float32"),
        "step_weights": decimals(4, 5, high=2),
        "value_weights": decimals(4, 3),
        "column": np.array([[0.0], [1], [1], [0], [1], [0], [1]], "float32"),
        "vector": np.array([0, 1, 1, 0, 1, 0, 1], "float32"),
        "vector_2": decimals(7),
        "vector_column": decimals(7, 1),
        "vector_weights": decimals(7),
        "embeddings": np.round(embeddings, 4).astype("float32"),
        "pairs": np.array([0, 0, 1, 1, 2, 2]),
        "alone": np.array([0, 0, 1, 1, 2, 3]),
        "same": np.zeros(6, "int64"),
    }


def plain(x: Any) -> Any:
    """A tensor as nested lists of numbers that read back as the same float32."""
    return np.asarray(keras.ops.convert_to_numpy(x)).tolist()


def arguments(case: Case, inputs: dict[str, Any], batch: tuple[Any, ...]) -> list[Any]:
    """The arrays and numbers of a batch."""
    return [
        keras.ops.convert_to_tensor(inputs[input_name(case, a)]) if isinstance(a, str) else a
        for a in batch
    ]


def run_metric(case: Case, inputs: dict[str, Any]) -> Any:
    """The result after all batches of a case."""
    metric = getattr(keras.metrics, case.name)(**case.options)
    for batch in case.batches:
        metric.update_state(*arguments(case, inputs, batch))
    return plain(metric.result())


def configs(module: Any) -> dict[str, Any]:
    """The default config of each class of a module."""
    found = {}
    for name, each in sorted(vars(module).items()):
        if inspect.isclass(each) and name not in ("CTC", "MeanMetricWrapper", "Metric", "Loss"):
            made: Any = each(**ARGUMENTS.get(name, {}))
            variables = getattr(made, "variables", [])
            found[name] = {
                "config": made.get_config(),
                "variables": [[v.path.split("/")[-1], list(v.shape)] for v in variables],
            }
            found[name]["config"]["name"] = found[name]["config"]["name"].rstrip("_0123456789")
    return found


def main() -> None:
    """Compute and write all of it."""
    inputs = make_inputs()
    data = {
        "keras": keras.__version__,
        "inputs": {
            name: {"dtype": str(x.dtype), "value": x.tolist()} for name, x in inputs.items()
        },
        "functions": {
            case.id: plain(
                getattr(keras.losses, case.name)(
                    *arguments(case, inputs, case.batches[0]), **case.options
                )
            )
            for case in FUNCTIONS
        },
        "objects": {
            case.id: plain(
                getattr(keras.losses, case.name)(**case.options)(
                    *arguments(case, inputs, case.batches[0])
                )
            )
            for case in OBJECTS
        },
        "metrics": {case.id: run_metric(case, inputs) for case in METRICS},
        "loss_configs": configs(keras.losses),
        "metric_configs": configs(keras.metrics),
    }
    lines = []
    for section, content in data.items():
        if isinstance(content, dict):
            rows = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in content.items()]
            lines.append(f" {json.dumps(section)}: {{\n" + ",\n".join(rows) + "\n }")
        else:
            lines.append(f" {json.dumps(section)}: {json.dumps(content)}")
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
