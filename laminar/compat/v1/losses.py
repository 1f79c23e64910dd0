"""`tf.losses`: weighted losses, which a graph lists."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "Reduction": ".loss_functions:Reduction",
    "absolute_difference": ".loss_functions:absolute_difference",
    "add_loss": ".loss_functions:add_loss",
    "compute_weighted_loss": ".loss_functions:compute_weighted_loss",
    "cosine_distance": ".loss_functions:cosine_distance",
    "get_losses": ".loss_functions:get_losses",
    "get_regularization_loss": ".loss_functions:get_regularization_loss",
    "get_regularization_losses": ".loss_functions:get_regularization_losses",
    "get_total_loss": ".loss_functions:get_total_loss",
    "hinge_loss": ".loss_functions:hinge_loss",
    "huber_loss": ".loss_functions:huber_loss",
    "log_loss": ".loss_functions:log_loss",
    "mean_pairwise_squared_error": ".pairwise:mean_pairwise_squared_error",
    "mean_squared_error": ".loss_functions:mean_squared_error",
    "sigmoid_cross_entropy": ".loss_functions:sigmoid_cross_entropy",
    "softmax_cross_entropy": ".loss_functions:softmax_cross_entropy",
    "sparse_softmax_cross_entropy": ".loss_functions:sparse_softmax_cross_entropy",
}

__getattr__, __dir__ = face(__name__, NAMES)
