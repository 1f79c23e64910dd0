"""What `compile` was told: losses, metrics and weights, matched with the outputs of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from laminar import losses, metrics, ops
from laminar.engine.errors import InvalidArgumentError
from laminar.layers.masking import get_mask
from laminar.tree import flatten


def per_output(
    value: Any, names: Sequence[str], what: str, *, same_for_all: bool = False
) -> list[Any]:
    """`value` for each output: by position from a list, by name from a dict.

    Args:
        value: None, one thing, a list or a dict.
        names: the names of the outputs.
        what: what it is, for errors.
        same_for_all: whether one thing is meant for every output.

    Raises:
        InvalidArgumentError: a list of another length, or a name that no output has.
    """
    count = len(names)
    if value is None:
        return [None] * count
    if isinstance(value, Mapping):
        unknown = [k for k in value if k not in names]
        if unknown:
            raise InvalidArgumentError(
                f"{what}: no output is named {', '.join(map(repr, unknown))}; "
                f"the outputs are {', '.join(names)}",
                remedy="use the names of the output layers",
            )
        return [value.get(name) for name in names]
    if isinstance(value, list | tuple):
        if len(value) != count:
            raise InvalidArgumentError(
                f"{what}: expected {count} entries, one for each output "
                f"({', '.join(names)}), got {len(value)}"
            )
        return list(value)
    if count == 1 or same_for_all:
        return [value] * count
    raise InvalidArgumentError(
        f"{what}: the model has {count} outputs ({', '.join(names)}), got one entry",
        remedy="pass a list or a dict with one entry for each output",
    )


def names_of(y_pred: Any, known: Sequence[str]) -> list[str]:
    """The names of the outputs: dict keys, those of the model, or numbers."""
    if isinstance(y_pred, Mapping):
        return sorted(map(str, y_pred))
    count = len(flatten(y_pred))
    if len(known) == count and len(set(known)) == count:
        return list(known)
    if len(known) == count:  # one layer called twice
        return [f"{name}_{i}" if known.count(name) > 1 else name for i, name in enumerate(known)]
    return [f"output_{i + 1}" for i in range(count)]


def targets_of(y: Any, y_pred: Any, names: Sequence[str], what: str) -> list[Any]:
    """The target of each output."""
    if len(names) == 1 and not isinstance(y, Mapping):
        leaves = flatten(y) if isinstance(y, list | tuple) else [y]
        return leaves if len(leaves) == 1 else [ops.stack(leaves, axis=-1)]
    return per_output(y, names, what)


class CompiledLoss:
    """The loss of all outputs together.

    Args:
        loss: a loss, or a list or dict of them by output.
        loss_weights: a factor for each.
        output_names: names of the model's outputs, when they are known.
    """

    def __init__(self, loss: Any, loss_weights: Any, output_names: Sequence[str]) -> None:
        self._loss = loss
        self._weights = loss_weights
        self._output_names = output_names
        self._built: list[tuple[str, Any, float]] | None = None
        self.trackers: list[metrics.Mean | None] = []

    def build(self, y_pred: Any) -> None:
        """Match losses with outputs, once."""
        if self._built is not None:
            return
        names = names_of(y_pred, self._output_names)
        found = per_output(self._loss, names, "compile: loss", same_for_all=True)
        weights = per_output(self._weights, names, "compile: loss_weights", same_for_all=True)
        self._built = [
            (name, None if loss is None else get_loss(loss), 1.0 if w is None else float(w))
            for name, loss, w in zip(names, found, weights, strict=True)
        ]
        several = sum(loss is not None for _, loss, _ in self._built) > 1
        self.trackers = [
            metrics.Mean(name=f"{name}_loss") if several and loss is not None else None
            for name, loss, _ in self._built
        ]

    def __call__(self, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """The weighted sum of the losses, a scalar; None when no output has one."""
        self.build(y_pred)
        assert self._built is not None
        names = [name for name, _, _ in self._built]
        outputs = flatten(y_pred)
        if y is None:
            raise InvalidArgumentError(
                "the loss needs targets and the data has none",
                remedy="pass y=, or have the data set yield (x, y)",
            )
        targets = targets_of(y, y_pred, names, "y")
        weights = (
            per_output(sample_weight, names, "sample_weight", same_for_all=True)
            if sample_weight is not None
            else [None] * len(names)
        )
        total = None
        rows = zip(self._built, targets, outputs, weights, self.trackers, strict=True)
        for (name, loss, factor), target, output, weight, tracker in rows:
            if loss is None:
                continue
            if target is None:
                raise InvalidArgumentError(
                    f"y: the output {name!r} has a loss and no target", remedy=f"pass y[{name!r}]"
                )
            value = loss(target, output, weight)
            if tracker is not None:
                tracker.update_state(value, sample_weight=ops.shape(output)[0])
            scaled = value if factor == 1.0 else value * factor
            total = scaled if total is None else total + scaled
        return total


class CompiledMetrics:
    """The metrics of all outputs.

    Args:
        metrics: a list for one output; a list of lists or a dict for several.
        weighted: the same, for metrics that take the sample weights.
        output_names: names of the model's outputs, when they are known.
    """

    def __init__(self, unweighted: Any, weighted: Any, output_names: Sequence[str]) -> None:
        self._unweighted = unweighted
        self._weighted = weighted
        self._output_names = output_names
        self._names: list[str] | None = None
        self._rows: list[tuple[int, Any, bool, str]] = []

    @property
    def built(self) -> bool:
        """Whether the metrics have been matched with the outputs."""
        return self._names is not None

    @property
    def metrics(self) -> list[Any]:
        """The metric objects."""
        return [metric for _, metric, _, _ in self._rows]

    @property
    def keys(self) -> list[tuple[str, Any]]:
        """Each metric with the name that it has in the logs."""
        return [(key, metric) for _, metric, _, key in self._rows]

    def build(self, y: Any, y_pred: Any) -> None:
        """Match metrics with outputs, once; "accuracy" becomes the kind that the shapes ask for."""
        if self._names is not None:
            return
        names = names_of(y_pred, self._output_names)
        outputs = flatten(y_pred)
        targets = targets_of(y, y_pred, names, "y") if y is not None else [None] * len(names)
        rows: list[tuple[int, Any, bool, str]] = []
        for given, weighted in ((self._unweighted, False), (self._weighted, True)):
            for i, entries in enumerate(_lists(given, names)):
                for entry in entries:
                    metric = get_metric(entry, targets[i], outputs[i])
                    key = metric.name if len(names) == 1 else f"{names[i]}_{metric.name}"
                    rows.append((i, metric, weighted, _free(key, rows)))
        self._rows = rows
        self._names = names

    def update(self, y: Any, y_pred: Any, sample_weight: Any) -> None:
        """Update each metric with its output."""
        self.build(y, y_pred)
        if not self._rows:
            return
        assert self._names is not None
        names, outputs = self._names, flatten(y_pred)
        targets = targets_of(y, y_pred, names, "y") if y is not None else [None] * len(names)
        weights = (
            per_output(sample_weight, names, "sample_weight", same_for_all=True)
            if sample_weight is not None
            else [None] * len(names)
        )
        for i, metric, weighted, _ in self._rows:
            weight = weights[i] if weighted else get_mask(outputs[i])
            metric.update_state(targets[i], outputs[i], sample_weight=weight)


def _free(key: str, rows: Sequence[tuple[int, Any, bool, str]]) -> str:
    taken = {row[3] for row in rows}
    count, free = 1, key
    while free in taken:
        free, count = f"{key}_{count}", count + 1
    return free


def _lists(given: Any, names: Sequence[str]) -> list[list[Any]]:
    """The metrics of each output as a list."""
    if given is None:
        return [[] for _ in names]
    if len(names) == 1 and not isinstance(given, Mapping):
        return [_flat(given)]
    return [_flat(v) for v in per_output(given, names, "compile: metrics")]


def _flat(value: Any) -> list[Any]:
    if value is None:
        return []
    return (
        [v for v in flatten(value) if v is not None] if isinstance(value, list | tuple) else [value]
    )


def get_loss(loss: Any) -> Any:
    """A callable `(y_true, y_pred, sample_weight)` for a loss, a name or a plain function."""
    found = losses.get(loss)
    if isinstance(found, losses.Loss):
        return found
    if not callable(found):
        raise InvalidArgumentError(f"compile: {loss!r} is not a loss")
    name = getattr(found, "__name__", type(found).__name__)
    return losses.LossFunctionWrapper(found, name=name)


def get_metric(entry: Any, y: Any, y_pred: Any) -> Any:
    """A metric for an object, a name or a function; "accuracy" and "crossentropy" by shape."""
    if isinstance(entry, str) and entry.lower() in ("accuracy", "acc"):
        metric = _by_shape(y, y_pred, _ACCURACIES)()
        metric.name = entry.lower()
        return metric
    if isinstance(entry, str) and entry.lower() in ("crossentropy", "ce"):
        metric = _by_shape(y, y_pred, _CROSSENTROPIES)()
        metric.name = entry.lower()
        return metric
    found = metrics.get(entry)
    if isinstance(found, metrics.Metric):
        return found
    name = entry if isinstance(entry, str) else getattr(found, "__name__", "metric")
    return metrics.MeanMetricWrapper(found, name=name)


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


def _by_shape(y: Any, y_pred: Any, kinds: Sequence[Any]) -> Any:
    """Binary for one probability, sparse for class numbers, categorical for one-hot rows."""
    if y_pred.shape[-1] == 1:
        return kinds[0]
    if y is not None and (
        len(y.shape) < len(y_pred.shape) or (y.shape[-1] == 1 and y_pred.shape[-1] != 1)
    ):
        return kinds[1]
    return kinds[2]
