"""The cases on which losses and metrics are compared with Keras: see make_loss_metric_reference.py.

A case names its inputs; the arrays stand in loss_metric_reference.json, beside what Keras made of
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

Batch = tuple[Any, ...]  # names of inputs, and numbers


class Case(NamedTuple):
    """A loss or metric with its options, and the arguments of its call or of each update."""

    name: str
    options: dict[str, Any]
    batches: tuple[Batch, ...]

    @property
    def id(self) -> str:
        """A name for the case, unique in its table."""
        options = ",".join(f"{key}={value}" for key, value in self.options.items())
        batches = " ".join("-".join(map(str, batch)) for batch in self.batches)
        return f"{self.name}({options}) {batches}"


def table(*rows: tuple[Any, ...]) -> Iterator[Case]:
    """Rows (names, [options], [batches or updates]) as cases: every name with all of both."""
    for names, options, batches in rows:
        for name in names.split():
            for each in options:
                for batch in batches:
                    updates = batch if isinstance(batch[0], tuple) else (batch,)
                    yield Case(name, each, updates)


PAIRS = [("values", "values_2"), ("one_hot", "probabilities"), ("sequence", "sequence_2")]
LABELS = [("classes", "probabilities"), ("classes_column", "probabilities")]
CROSS = [{"from_logits": True}, {"label_smoothing": 0.1}, {"axis": 0}]
CROSS += [{"from_logits": True, "label_smoothing": 0.2, "axis": 0}]

FUNCTIONS = list(
    table(
        (
            "mean_squared_error mean_absolute_error mean_absolute_percentage_error "
            "mean_squared_logarithmic_error huber log_cosh cosine_similarity kl_divergence poisson "
            "hinge squared_hinge categorical_hinge dice tversky binary_crossentropy "
            "binary_focal_crossentropy categorical_crossentropy categorical_focal_crossentropy",
            [{}],
            PAIRS,
        ),
        ("hinge squared_hinge categorical_hinge huber", [{}], [("signs", "logits")]),
        ("huber", [{"delta": 0.3}], [("values", "logits")]),
        ("cosine_similarity", [{"axis": 0}], [("values", "values_2")]),
        ("log_cosh mean_squared_error", [{}], [("large", "values")]),
        (
            "binary_crossentropy binary_focal_crossentropy categorical_crossentropy "
            "categorical_focal_crossentropy",
            CROSS,
            [("one_hot", "logits_or_probabilities")],
        ),
        ("binary_crossentropy categorical_crossentropy", [{}], [("one_hot", "one_hot")]),
        (
            "binary_focal_crossentropy",
            [{"apply_class_balancing": True}, {"gamma": 3.0, "alpha": 0.4}],
            [("one_hot", "probabilities")],
        ),
        (
            "categorical_focal_crossentropy",
            [{"alpha": [0.1, 0.2, 0.3], "gamma": 1.5}],
            [("one_hot", "probabilities")],
        ),
        (
            "sparse_categorical_crossentropy",
            [{}, {"from_logits": True}, {"ignore_class": 1}]
            + [{"ignore_class": -1, "from_logits": True}],
            [("classes", "logits_or_probabilities")],
        ),
        ("sparse_categorical_crossentropy", [{}], LABELS),
        (
            "sparse_categorical_crossentropy",
            [{"from_logits": True}],
            [("steps", "sequence_logits"), ("steps_column", "sequence_logits")],
        ),
        (
            "dice tversky",
            [{"axis": -1}, {"axis": [1, 2]}, {"axis": 1}],
            [("sequence", "sequence_2")],
        ),
        ("tversky", [{"alpha": 0.3, "beta": 0.6}], [("one_hot", "probabilities")]),
        ("categorical_generalized_cross_entropy", [{"q": 0.3}, {"q": 0.7}], LABELS[:1]),
        (
            "circle",
            [{}, {"gamma": 5.0, "margin": 0.1}, {"gamma": 3.0, "remove_diagonal": False}],
            [("pairs", "embeddings"), ("alone", "embeddings"), ("same", "embeddings")],
        ),
    )
)

OBJECTS = list(
    table(
        (
            "MeanSquaredError",
            [
                {"reduction": r}
                for r in ("sum", "mean", "sum_over_batch_size", "mean_with_sample_weight", None)
            ],
            [
                ("values", "values_2"),
                ("values", "values_2", "weights"),
                ("values", "values_2", "weights_column"),
                ("values", "values_2", 2.0),
                ("sequence", "sequence_2", "weights_column"),
                ("sequence", "sequence_2", "step_weights"),
            ],
        ),
        ("MeanSquaredError BinaryCrossentropy Hinge Dice", [{}], [("column", "vector_2")]),
        ("MeanSquaredError BinaryCrossentropy Poisson", [{}], [("vector", "vector_2")]),
        (
            "SparseCategoricalCrossentropy",
            [{}, {"ignore_class": 1}],
            [(*pair, *weights) for pair in LABELS for weights in ((), ("weights",))],
        ),
        (
            "SparseCategoricalCrossentropy",
            [{"from_logits": True, "ignore_class": 0}],
            [("steps", "sequence_logits"), ("steps", "sequence_logits", "step_weights")],
        ),
        ("Huber", [{"delta": 0.3}], [("values", "logits", "weights")]),
        ("CosineSimilarity KLDivergence LogCosh", [{}], [("values", "values_2", "weights")]),
        ("Circle", [{"gamma": 4.0}], [("pairs", "embeddings")]),
        ("CategoricalGeneralizedCrossEntropy", [{}], [("classes", "probabilities", "weights")]),
        ("BinaryFocalCrossentropy", [{"gamma": 1.0}], [("one_hot", "probabilities", "weights")]),
    )
)

MATRICES = [
    ("one_hot", "probabilities"),
    ("one_hot", "probabilities", "weights"),
    (("zeros_ones", "values"), ("zeros_ones", "values_2", "weights")),
]
SCORES = [
    ("vector", "vector_2"),
    ("vector", "vector_2", "vector_weights"),
    (("zeros_ones", "values"), ("zeros_ones", "values_2", "weights")),
    ("zeros_ones", "values", "value_weights"),
    ("zeros_ones", "quarters"),
]
AREAS: list[dict[str, Any]] = [
    {"num_thresholds": 5},
    {"thresholds": [0.1, 0.15, 0.8]},
    {"multi_label": True, "num_thresholds": 6},
    {"multi_label": True, "num_labels": 3, "label_weights": [1.0, 2.0, 0.5]},
]
CURVES = [
    {"curve": curve, "summation_method": method}
    for curve in ("ROC", "PR", "PRGAIN")
    for method in ("interpolation", "minoring", "majoring")
]

METRICS = list(
    table(
        (
            "MeanSquaredError MeanAbsoluteError MeanAbsolutePercentageError "
            "MeanSquaredLogarithmicError LogCoshError CosineSimilarity RootMeanSquaredError "
            "KLDivergence Poisson Hinge SquaredHinge CategoricalHinge PearsonCorrelation "
            "ConcordanceCorrelation Accuracy BinaryAccuracy CategoricalAccuracy R2Score "
            "BinaryCrossentropy CategoricalCrossentropy F1Score FBetaScore",
            [{}],
            MATRICES,
        ),
        ("TopKCategoricalAccuracy", [{"k": 1}, {"k": 2}], MATRICES),
        (
            "Mean Sum",
            [{}],
            [
                (("values",), ("vector",)),
                ("values", "weights"),
                ("values", "value_weights"),
                ("sequence", "step_weights"),
                ((3.0,), (4.0,)),
                ((3.0, 2.0), (4.0, 1.0)),
                ("values", 2.0),
            ],
        ),
        (
            "SparseCategoricalAccuracy SparseCategoricalCrossentropy",
            [{}],
            [("classes", "probabilities"), ("classes_column", "probabilities", "weights")],
        ),
        (
            "SparseCategoricalAccuracy SparseTopKCategoricalAccuracy",
            [{}],
            [
                ("steps", "wide"),
                ("steps", "wide", "step_weights"),
                ("steps_column", "wide", "weights"),
            ],
        ),
        (
            "SparseTopKCategoricalAccuracy",
            [{"k": 2, "from_sorted_ids": True}],
            [("classes", "ranking")],
        ),
        (
            "SparseCategoricalCrossentropy",
            [{"ignore_class": 1}],
            [("classes", "probabilities", "weights")],
        ),
        ("BinaryAccuracy", [{"threshold": 0.3}], [("vector", "vector_2", "vector_weights")]),
        (
            "BinaryCrossentropy",
            [{"from_logits": True, "label_smoothing": 0.1}],
            [("zeros_ones", "logits")],
        ),
        ("CosineSimilarity PearsonCorrelation", [{"axis": 0}], [("values", "values_2")]),
        ("MeanSquaredError RootMeanSquaredError", [{}], [("vector", "vector_column")]),
        (
            "TruePositives FalsePositives TrueNegatives FalseNegatives Precision Recall",
            [{}, {"thresholds": 0.3}, {"thresholds": [0.7, 0.2, 0.5]}],
            SCORES,
        ),
        ("Precision", [{"thresholds": [0.0, 0.25, 0.5, 0.75, 1.0]}], SCORES),
        (
            "Precision Recall",
            [
                {"top_k": 2},
                {"class_id": 1},
                {"top_k": 1, "class_id": 0},
                {"top_k": 2, "thresholds": 0.5},
                {"class_id": 2, "thresholds": [0.1, 0.6]},
            ],
            [("zeros_ones", "values"), ("zeros_ones", "values", "weights")],
        ),
        (
            "AUC",
            [{**curve, **area} for curve in CURVES for area in AREAS],
            [(("zeros_ones", "values"), ("ones_zeros", "values_2", "weights"))],
        ),
        ("AUC", CURVES, [("vector", "vector_2", "vector_weights")]),
        ("AUC", [{"from_logits": True}, {"num_thresholds": 2}], [("zeros_ones", "logits")]),
        ("AUC", [{"label_weights": [1.0, 2.0, 0.5]}], [("zeros_ones", "values")]),
        *(
            (
                name,
                [
                    {rate: value, **more}
                    for value in (0.0, 0.4, 1.0)
                    for more in ({}, {"num_thresholds": 1}, {"num_thresholds": 7})
                ],
                [("vector", "vector_2"), ("vector", "vector_2", "vector_weights")],
            )
            for name, rate in (
                ("SensitivityAtSpecificity", "specificity"),
                ("SpecificityAtSensitivity", "sensitivity"),
                ("PrecisionAtRecall", "recall"),
                ("RecallAtPrecision", "precision"),
            )
        ),
        ("PrecisionAtRecall", [{"recall": 0.5, "class_id": 1}], [("zeros_ones", "values")]),
        (
            "F1Score",
            [
                {"average": average, "threshold": threshold}
                for average in (None, "micro", "macro", "weighted")
                for threshold in (None, 0.4)
            ],
            [("zeros_ones", "values"), ("zeros_ones", "values", "weights")],
        ),
        ("FBetaScore", [{"beta": 2.0, "average": "macro"}], [("zeros_ones", "values")]),
        ("F1Score", [{}], [("zeros_ones", "zeros")]),
        (
            "R2Score",
            [
                {"class_aggregation": aggregation, "num_regressors": number}
                for aggregation in (None, "uniform_average", "variance_weighted_average")
                for number in (0, 1, 40)
            ],
            [("values", "values_2"), ("values", "values_2", "weights")],
        ),
        (
            "IoU",
            [
                {"num_classes": 3, "target_class_ids": [0, 1]},
                {"num_classes": 3, "target_class_ids": [2], "dtype": "float32"},
                {"num_classes": 3, "target_class_ids": [0, 1, 2], "ignore_class": 1},
            ],
            [
                (("steps", "steps_2"), ("steps_2", "steps")),
                ("steps", "steps_2", "step_weights"),
            ],
        ),
        ("MeanIoU", [{"num_classes": 3, "ignore_class": -1}], [("holes", "classes")]),
        ("MeanIoU", [{"num_classes": 3, "sparse_y_pred": False}], [("steps", "sequence_logits")]),
        (
            "BinaryIoU",
            [{}, {"threshold": 0.3, "target_class_ids": [0]}],
            [("zeros_ones", "values")],
        ),
        (
            "OneHotIoU",
            [{"num_classes": 3, "target_class_ids": [0, 2]}],
            [("one_hot", "probabilities")],
        ),
        ("OneHotMeanIoU", [{"num_classes": 3}], [("one_hot", "probabilities")]),
        ("OneHotMeanIoU", [{"num_classes": 3, "sparse_y_pred": True}], [("one_hot", "classes")]),
    )
)

# What a class needs beside its defaults, for the configs.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "IoU": {"num_classes": 3, "target_class_ids": [0, 1]},
    "MeanIoU": {"num_classes": 3},
    "OneHotIoU": {"num_classes": 3, "target_class_ids": [0, 1]},
    "OneHotMeanIoU": {"num_classes": 3},
    "PrecisionAtRecall": {"recall": 0.5},
    "RecallAtPrecision": {"precision": 0.5},
    "SensitivityAtSpecificity": {"specificity": 0.5},
    "SpecificityAtSensitivity": {"sensitivity": 0.5},
}


def input_names(case: Case) -> list[str]:
    """The inputs of a case, each once; logits_or_probabilities is one or the other."""
    names = [n for batch in case.batches for n in batch if isinstance(n, str)]
    return list(dict.fromkeys(input_name(case, n) for n in names))


def input_name(case: Case, name: str) -> str:
    """The array that an argument of a case means."""
    if name == "logits_or_probabilities":
        return "logits" if case.options.get("from_logits") else "probabilities"
    return name
