"""Make reference.npz: what Keras 3 itself computes, step by step, for each optimizer and schedule.

    KERAS_BACKEND=torch python tests/optimizers/make_reference.py

The file holds the cases (JSON), the first values of three variables, their gradients in 20 steps,
and for each case the variables after the steps RECORDED, the optimizer's own variables at the end
and their paths, shapes and dtypes. The tests read the cases from the file.
"""

from __future__ import annotations

import importlib
import json
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

STEPS = 20
RECORDED = (1, 2, 7, 20)
NAMES = {"kernel": (3, 2), "bias": (4,), "conv": (2, 2, 3)}

COSINE = {"CosineDecay": {"initial_learning_rate": 0.1, "decay_steps": 12, "warmup_steps": 4}}
COSINE["CosineDecay"]["warmup_target"] = 0.3

# Case name -> optimizer and arguments. Beyond the optimizer's own arguments:
#   schedule: {class: arguments}, the learning rate; exclude: for exclude_from_weight_decay;
#   constrain: variables stay above -0.2; missing: the second variable has no gradient;
#   inner: the case that LossScaleOptimizer wraps; nonfinite: steps with an infinite gradient.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("SGD", {"learning_rate": 0.1}),
    "sgd-momentum": ("SGD", {"learning_rate": 0.1, "momentum": 0.9}),
    "sgd-nesterov": ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    "sgd-decay": ("SGD", {"learning_rate": 0.1, "weight_decay": 0.1}),
    "sgd-exclude": ("SGD", {"learning_rate": 0.1, "weight_decay": 0.1, "exclude": ["bias"]}),
    "sgd-clipnorm": ("SGD", {"learning_rate": 0.1, "clipnorm": 0.9}),
    "sgd-clipvalue": ("SGD", {"learning_rate": 0.1, "clipvalue": 0.3}),
    "sgd-global-clipnorm": ("SGD", {"learning_rate": 0.1, "global_clipnorm": 4.0}),
    "sgd-ema": ("SGD", {"learning_rate": 0.1, "use_ema": True, "ema_momentum": 0.8}),
    "sgd-ema-overwrite": (
        "SGD",
        {
            "learning_rate": 0.1,
            "use_ema": True,
            "ema_momentum": 0.8,
            "ema_overwrite_frequency": 3,
            "constrain": True,
        },
    ),
    "sgd-accumulate": (
        "SGD",
        {
            "learning_rate": 0.1,
            "momentum": 0.5,
            "gradient_accumulation_steps": 3,
            "weight_decay": 0.1,
            "global_clipnorm": 2.0,
        },
    ),
    "sgd-accumulate-schedule": (
        "SGD",
        {
            "schedule": COSINE,
            "gradient_accumulation_steps": 2,
            "use_ema": True,
            "ema_momentum": 0.7,
            "ema_overwrite_frequency": 2,
        },
    ),
    "sgd-loss-scale": ("SGD", {"learning_rate": 0.1, "loss_scale_factor": 4.0}),
    "sgd-constrain": ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "constrain": True}),
    "sgd-missing": ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "missing": True}),
    "adam": ("Adam", {"learning_rate": 0.05}),
    "adam-amsgrad": ("Adam", {"learning_rate": 0.05, "amsgrad": True}),
    "adam-betas": ("Adam", {"learning_rate": 0.05, "beta_1": 0.5, "beta_2": 0.9, "epsilon": 1e-3}),
    "adam-decay-clip": ("Adam", {"learning_rate": 0.05, "weight_decay": 0.02, "clipnorm": 0.5}),
    "adam-schedule": ("Adam", {"schedule": COSINE}),
    "adam-accumulate": ("Adam", {"learning_rate": 0.05, "gradient_accumulation_steps": 4}),
    "adamw": ("AdamW", {"learning_rate": 0.05, "weight_decay": 0.05}),
    "adamw-amsgrad": ("AdamW", {"learning_rate": 0.05, "amsgrad": True}),
    "rmsprop-epsilon": ("RMSprop", {"learning_rate": 0.05, "epsilon": 0.1}),
    "rmsprop": ("RMSprop", {"learning_rate": 0.05}),
    "rmsprop-momentum": ("RMSprop", {"learning_rate": 0.05, "momentum": 0.8}),
    "rmsprop-centered": ("RMSprop", {"learning_rate": 0.05, "centered": True}),
    "rmsprop-both": (
        "RMSprop",
        {"learning_rate": 0.05, "centered": True, "momentum": 0.8, "rho": 0.7},
    ),
    "adagrad-epsilon": ("Adagrad", {"learning_rate": 0.1, "epsilon": 0.3}),
    "adagrad": ("Adagrad", {"learning_rate": 0.1}),
    "adagrad-start": ("Adagrad", {"learning_rate": 0.1, "initial_accumulator_value": 0.5}),
    "adadelta": ("Adadelta", {"learning_rate": 1.0}),
    "adadelta-rho": ("Adadelta", {"learning_rate": 1.0, "rho": 0.8, "epsilon": 1e-3}),
    "adamax-epsilon": ("Adamax", {"learning_rate": 0.05, "epsilon": 0.3, "beta_2": 0.8}),
    "adamax": ("Adamax", {"learning_rate": 0.05}),
    "nadam-epsilon": ("Nadam", {"learning_rate": 0.05, "epsilon": 0.1, "beta_1": 0.7}),
    "nadam": ("Nadam", {"learning_rate": 0.05}),
    "nadam-accumulate": ("Nadam", {"learning_rate": 0.05, "gradient_accumulation_steps": 3}),
    "ftrl": ("Ftrl", {"learning_rate": 0.1}),
    "ftrl-regularized": (
        "Ftrl",
        {
            "learning_rate": 0.1,
            "l1_regularization_strength": 0.05,
            "l2_regularization_strength": 0.1,
            "l2_shrinkage_regularization_strength": 0.02,
            "beta": 0.3,
        },
    ),
    "ftrl-power": ("Ftrl", {"learning_rate": 0.1, "learning_rate_power": -0.7}),
    "lion": ("Lion", {"learning_rate": 0.02}),
    "lion-decay": ("Lion", {"learning_rate": 0.02, "weight_decay": 0.1, "beta_1": 0.7}),
    "adafactor-epsilons": (
        "Adafactor",
        {"learning_rate": 0.05, "epsilon_1": 0.2, "epsilon_2": 0.9, "clip_threshold": 2.0},
    ),
    "adafactor": ("Adafactor", {"learning_rate": 0.05}),
    "adafactor-fixed-step": (
        "Adafactor",
        {"learning_rate": 0.05, "relative_step": False, "beta_2_decay": -0.5},
    ),
    "adafactor-threshold": ("Adafactor", {"learning_rate": 0.5, "clip_threshold": 0.5}),
    "lamb-epsilon": ("Lamb", {"learning_rate": 0.05, "epsilon": 0.1, "beta_2": 0.9}),
    "lamb": ("Lamb", {"learning_rate": 0.05}),
    "lamb-decay": ("Lamb", {"learning_rate": 0.05, "weight_decay": 0.1}),
    "muon-weight-decay": (
        "Muon",
        {
            "learning_rate": 0.05,
            "weight_decay": 0.3,
            "adam_weight_decay": 0.1,
            "ns_steps": 3,
            "epsilon": 1e-3,
            "momentum": 0.8,
            "exclude": ["conv"],
        },
    ),
    "muon": ("Muon", {"learning_rate": 0.05}),
    "muon-plain": (
        "Muon",
        {"learning_rate": 0.05, "nesterov": False, "rms_rate": None, "adam_lr_ratio": 0.5},
    ),
    "muon-exclude": ("Muon", {"learning_rate": 0.05, "exclude_layers": ["kern"]}),
    "loss-scale-sgd": ("LossScaleOptimizer", {"inner": ["SGD", {"learning_rate": 0.1}]}),
    "loss-scale-adam": (
        "LossScaleOptimizer",
        {
            "inner": ["Adam", {"learning_rate": 0.05, "gradient_accumulation_steps": 2}],
            "initial_scale": 8.0,
            "dynamic_growth_steps": 3,
            "nonfinite": [2, 3, 9],
        },
    ),
}

# Schedule class -> lists of arguments; each is evaluated at SCHEDULE_STEPS.
SCHEDULE_STEPS = (0, 1, 2, 3, 5, 9, 10, 11, 17, 20, 29, 31, 47, 99, 1000)
SCHEDULES: dict[str, list[dict[str, Any]]] = {
    "ExponentialDecay": [
        {"initial_learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.9},
        {"initial_learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.9, "staircase": True},
    ],
    "PiecewiseConstantDecay": [
        {"boundaries": [2, 10, 30], "values": [1.0, 0.5, 0.1, 0.05]},
        {"boundaries": [9.5], "values": [0.2, 0.1]},
    ],
    "PolynomialDecay": [
        {"initial_learning_rate": 0.1, "decay_steps": 20},
        {
            "initial_learning_rate": 0.1,
            "decay_steps": 20,
            "end_learning_rate": 0.01,
            "power": 0.5,
            "cycle": True,
        },
    ],
    "InverseTimeDecay": [
        {"initial_learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.5},
        {"initial_learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.5, "staircase": True},
    ],
    "CosineDecay": [
        {"initial_learning_rate": 0.1, "decay_steps": 20},
        {"initial_learning_rate": 0.1, "decay_steps": 20, "alpha": 0.2},
        {
            "initial_learning_rate": 0.0,
            "decay_steps": 20,
            "alpha": 0.1,
            "warmup_target": 0.3,
            "warmup_steps": 10,
        },
        {"initial_learning_rate": 0.1, "decay_steps": 20, "warmup_steps": 10},
    ],
    "CosineDecayRestarts": [
        {"initial_learning_rate": 0.1, "first_decay_steps": 4},
        {
            "initial_learning_rate": 0.1,
            "first_decay_steps": 4,
            "t_mul": 1.0,
            "m_mul": 0.9,
            "alpha": 0.1,
        },
        {"initial_learning_rate": 0.1, "first_decay_steps": 3, "t_mul": 1.5, "m_mul": 0.8},
    ],
}


# Arguments of a case that are not arguments of the optimizer.
_OF_THE_CASE = ("schedule", "exclude", "constrain", "missing", "inner", "nonfinite")


def make_optimizer(keras: Any, kind: str, arguments: dict[str, Any]) -> Any:
    """The optimizer of a case, of `keras` or of another package with its names."""
    given = {key: value for key, value in arguments.items() if key not in _OF_THE_CASE}
    if "schedule" in arguments:
        ((name, options),) = arguments["schedule"].items()
        given["learning_rate"] = getattr(keras.optimizers.schedules, name)(**options)
    if "inner" in arguments:
        given["inner_optimizer"] = make_optimizer(keras, *arguments["inner"])
    optimizer = getattr(keras.optimizers, kind)(name="opt", **given)
    if "exclude" in arguments:
        optimizer.exclude_from_weight_decay(var_names=arguments["exclude"])
    return optimizer


def run_case(
    keras: Any,
    kind: str,
    arguments: dict[str, Any],
    start: Sequence[Array],
    gradients: Sequence[Sequence[Array]],
) -> tuple[Array, Array, list[Any], dict[str, Any]]:
    """Take the steps of a case: recorded variables, slots, their description, and the config."""
    variables = [keras.Variable(w, name=name) for name, w in zip(NAMES, start, strict=True)]
    if arguments.get("constrain"):
        for v in variables:
            v.constraint = lambda w: keras.ops.maximum(w, -0.2)
    optimizer = make_optimizer(keras, kind, arguments)
    optimizer.build(variables)
    rows = []
    for step, given in enumerate(gradients, start=1):
        grads: list[Any] = [keras.ops.convert_to_tensor(g) for g in given]
        if step in arguments.get("nonfinite", ()):
            grads[1] = grads[1] * float("inf")
        if arguments.get("missing"):
            grads[1] = None
        optimizer.apply(grads, variables)
        if step in RECORDED:
            rows.append(np.concatenate([v.numpy().ravel() for v in variables]))
    own = optimizer.variables
    slots = np.concatenate([v.numpy().ravel().astype("float64") for v in own])
    described = [[v.path, list(v.shape), str(v.dtype)] for v in own]
    return np.stack(rows), slots, described, optimizer.get_config()


def main() -> None:
    keras = importlib.import_module("keras")  # at hand only where the file is made anew
    warnings.simplefilter("ignore")  # "no gradients for bias" is what one case is about
    rng = np.random.default_rng(7)
    start = [rng.normal(size=shape).astype("float32") for shape in NAMES.values()]
    gradients = [
        [rng.normal(size=shape).astype("float32") for shape in NAMES.values()] for _ in range(STEPS)
    ]
    arrays: dict[str, Any] = {
        "start": np.concatenate([w.ravel() for w in start]),
        "gradients": np.stack([np.concatenate([g.ravel() for g in row]) for row in gradients]),
    }
    cases: dict[str, Any] = {}
    for name, (kind, arguments) in CASES.items():
        rows, slots, described, config = run_case(keras, kind, arguments, start, gradients)
        for entry in described:  # what Keras leaves without a name is numbered by the process
            entry[0] = re.sub(r"^variable(_\d+)?$", "variable", entry[0])
        config.pop("inner_optimizer", None)  # its module is the backend's own
        arrays[f"{name}/values"], arrays[f"{name}/slots"] = rows, slots
        cases[name] = [kind, arguments, described, config]
    schedules: list[Any] = []
    for kind, table in SCHEDULES.items():
        for arguments in table:
            made = getattr(keras.optimizers.schedules, kind)(**arguments)
            values = [float(made(step)) for step in SCHEDULE_STEPS]
            schedules.append([kind, arguments, values, made.get_config()])
    about = {
        "names": NAMES,
        "recorded": RECORDED,
        "cases": cases,
        "schedule_steps": SCHEDULE_STEPS,
        "schedules": schedules,
        "version": keras.__version__,
    }
    arrays["about"] = np.array(json.dumps(about))
    np.savez_compressed(Path(__file__).with_name("reference.npz"), **arrays)


if __name__ == "__main__":
    main()
