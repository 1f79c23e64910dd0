"""`tf.metrics`: values that batches add to."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "auc": ".thresholds:auc",
    "precision_at_thresholds": ".thresholds:precision_at_thresholds",
    "average_precision_at_k": ".ranking:average_precision_at_k",
    "precision_at_k": ".ranking:precision_at_k",
    "precision_at_top_k": ".ranking:precision_at_top_k",
    "recall_at_k": ".ranking:recall_at_k",
    "recall_at_top_k": ".ranking:recall_at_top_k",
    "sparse_average_precision_at_k": ".ranking:average_precision_at_k",
    "sparse_precision_at_k": ".ranking:precision_at_k",
    "recall_at_thresholds": ".thresholds:recall_at_thresholds",
    "true_positives_at_thresholds": ".thresholds:true_positives_at_thresholds",
    "false_negatives_at_thresholds": ".thresholds:false_negatives_at_thresholds",
    "true_negatives_at_thresholds": ".thresholds:true_negatives_at_thresholds",
    "false_positives_at_thresholds": ".thresholds:false_positives_at_thresholds",
    "sensitivity_at_specificity": ".thresholds:sensitivity_at_specificity",
    "specificity_at_sensitivity": ".thresholds:specificity_at_sensitivity",
    "mean_iou": ".class_metrics:mean_iou",
    "mean_per_class_accuracy": ".class_metrics:mean_per_class_accuracy",
    "mean_relative_error": ".class_metrics:mean_relative_error",
    "mean_cosine_distance": ".class_metrics:mean_cosine_distance",
    "percentage_below": ".class_metrics:percentage_below",
    "mean_tensor": ".class_metrics:mean_tensor",
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
