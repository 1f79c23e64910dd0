"""Distillation: a small model learns from a large one."""

from laminar.registration import list_builtins

from .distiller import Distiller as Distiller
from .losses import DistillationLoss as DistillationLoss
from .losses import FeatureDistillation as FeatureDistillation
from .losses import LogitsDistillation as LogitsDistillation

list_builtins(
    "keras.distillation",
    {
        "Distiller": Distiller,
        "DistillationLoss": DistillationLoss,
        "FeatureDistillation": FeatureDistillation,
        "LogitsDistillation": LogitsDistillation,
    },
)
