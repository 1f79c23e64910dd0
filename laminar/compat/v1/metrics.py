"""`tf.metrics`: values that batches add to."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "accuracy": ".streaming:accuracy",
    "false_negatives": ".streaming:false_negatives",
    "false_positives": ".streaming:false_positives",
    "mean": ".streaming:mean",
    "mean_absolute_error": ".streaming:mean_absolute_error",
    "mean_squared_error": ".streaming:mean_squared_error",
    "precision": ".streaming:precision",
    "recall": ".streaming:recall",
    "root_mean_squared_error": ".streaming:root_mean_squared_error",
    "true_negatives": ".streaming:true_negatives",
    "true_positives": ".streaming:true_positives",
}

__getattr__, __dir__ = face(__name__, NAMES)
