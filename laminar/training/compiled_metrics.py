"""The metrics of a compiled model, matched with its outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from laminar import metrics
from laminar.engine.state import Variable
from laminar.metrics import MetricLike
from laminar.naming import to_snake_case
from laminar.tree import flatten

from ..typing import TensorStructure
from .outputs import Outputs, check_arguments
from .task import by_task

# Metrics of one output, or a list of them for each output, in a list or dict.
MetricsLike: TypeAlias = (
    MetricLike
    | Sequence[MetricLike | Sequence[MetricLike | None] | None]
    | Mapping[str, MetricLike | Sequence[MetricLike | None] | None]
)


class _Row(NamedTuple):
    """A metric of output number `output`, under its name in the logs."""

    output: int
    metric: Any
    weighted: bool
    key: str


class CompiledMetrics:
    """The metrics of all outputs.

    Until they are matched with the outputs, at the first `update_state`, this object stands for
    all of them among the metrics of the model.

    Args:
        unweighted: a list for one output; a list of lists or a dict for several.
        weighted: the same, for metrics that take the sample weights.
        output_names: names of the model's outputs, as far as they are known.
    """

    def __init__(
        self, unweighted: MetricsLike, weighted: MetricsLike, output_names: Sequence[str]
    ) -> None:
        self.name = "compile_metrics"
        self._given = ((unweighted, False), (weighted, True))
        self._output_names = output_names
        self._outputs: Outputs | None = None
        self._rows: list[_Row] = []

    @property
    def built(self) -> bool:
        """Whether the metrics have been matched with the outputs."""
        return self._outputs is not None

    @property
    def metrics(self) -> list[Any]:
        """The metrics, or this object while it stands for them."""
        is_pending = not self.built and self._has_metrics
        return [self] if is_pending else list(self.by_key.values())

    @property
    def _has_metrics(self) -> bool:
        return any(entry is not None for given, _ in self._given for entry in flatten(given))

    @property
    def variables(self) -> list[Variable]:
        """The variables of the metrics."""
        return [v for row in self._rows for v in row.metric.variables]

    @property
    def by_key(self) -> dict[str, Any]:
        """The metrics by their names in the logs; those of several outputs sorted."""
        rows = self._rows
        if self._outputs is not None and len(self._outputs.names) > 1:
            rows = sorted(rows, key=lambda row: row.key)
        return {row.key: row.metric for row in rows}

    def build(self, y: TensorStructure, y_pred: Any) -> Outputs:
        """Match metrics with outputs, once; "accuracy" becomes the kind that the shapes ask for."""
        if self._outputs is not None:
            return self._outputs
        outputs = Outputs(y_pred, self._output_names)
        targets, predictions = self._targets(outputs, y), flatten(y_pred)
        rows: list[_Row] = []
        for given, weighted in self._given:
            for i, entries in enumerate(_lists(given, outputs)):
                for entry in entries:
                    metric = get_metric(entry, targets[i], predictions[i])
                    is_named = len(targets) > 1 and not outputs.are_numbered
                    prefix = f"{outputs.names[i]}_" if is_named else ""
                    key = _free_key(prefix, metric.name, weighted, [row.key for row in rows])
                    rows.append(_Row(i, metric, weighted, key))
        self._rows = rows
        self._outputs = outputs
        return outputs

    def _targets(self, outputs: Outputs, y: TensorStructure) -> list[Any]:
        leaves = flatten(y)
        if not self._has_metrics:
            return [None] * len(outputs.names)
        if len(leaves) == 1 and len(outputs.names) == 1:
            return leaves
        return outputs.split(y, "y")

    def update_state(
        self,
        y: TensorStructure,
        y_pred: Any,
        sample_weight: TensorStructure | None = None,
    ) -> None:
        """Update each metric with its output."""
        outputs = self.build(y, y_pred)
        if not self._rows:
            return
        targets, predictions = self._targets(outputs, y), flatten(y_pred)
        weights = outputs.split(sample_weight, "sample_weight", same_for_all=True)
        for row in self._rows:
            weight = weights[row.output] if row.weighted else None
            if weight is None:
                row.metric.update_state(targets[row.output], predictions[row.output])
            else:
                row.metric.update_state(
                    targets[row.output], predictions[row.output], sample_weight=weight
                )

    def result(self) -> dict[str, Any]:
        """The results of all metrics, by name."""
        return {key: metric.result() for key, metric in self.by_key.items()}

    def reset_state(self) -> None:
        """Set all metrics back."""
        for row in self._rows:
            row.metric.reset_state()


def _free_key(prefix: str, name: str, weighted: bool, taken: Collection[str]) -> str:
    """A name for the logs that no other metric has."""
    key = prefix + name
    if weighted and key in taken:
        key = f"{prefix}weighted_{name}"
    count, free = 1, key
    while free in taken:
        free, count = f"{key}_{count}", count + 1
    return free


def _lists(given: Any, outputs: Outputs) -> list[list[Any]]:
    """The metrics of each output as a list."""
    if given is not None and len(outputs.names) == 1 and not isinstance(given, Mapping):
        return [_flat(given)]
    return [_flat(value) for value in outputs.split(given, "compile: metrics")]


def _flat(value: Any) -> list[Any]:
    return [entry for entry in flatten(value) if entry is not None]


def get_metric(entry: Any, y: TensorStructure, y_pred: Any) -> Any:
    """A metric for an object, a name or a function; "accuracy" and "crossentropy" by the shapes.

    One that is given by name has that name in the logs.
    """
    kinds = _BY_TASK.get(entry.lower()) if isinstance(entry, str) else None
    found = metrics.get(entry) if kinds is None else by_task(y, y_pred, kinds)()
    if not isinstance(found, metrics.Metric):
        name = to_snake_case(getattr(found, "__name__", type(found).__name__))
        found = metrics.MeanMetricWrapper(found, name=name)
    if isinstance(entry, str):
        found.name = entry
    return found


_ACCURACIES = (
    metrics.BinaryAccuracy,
    metrics.SparseCategoricalAccuracy,
    metrics.CategoricalAccuracy,
)
_CROSSENTROPIES = (
    metrics.BinaryCrossentropy,
    metrics.SparseCategoricalCrossentropy,
    metrics.CategoricalCrossentropy,
)
_BY_TASK = {
    "accuracy": _ACCURACIES,
    "acc": _ACCURACIES,
    "crossentropy": _CROSSENTROPIES,
    "ce": _CROSSENTROPIES,
}


def check_metrics(given: MetricsLike | None) -> None:
    """InvalidArgumentError for a name that is not known, and for what is no metric."""
    for entry in flatten(given):
        if not callable(entry) and not (isinstance(entry, str) and entry.lower() in _BY_TASK):
            metrics.get(entry)  # None is none
        check_arguments(entry, "metric")
