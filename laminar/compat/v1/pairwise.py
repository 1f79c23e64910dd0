"""`tf.losses`: a loss of differences between elements of an example."""

from __future__ import annotations

from typing import Any

from laminar import ops
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.state import GraphKeys

from .adapting import v1
from .loss_functions import compute_weighted_loss
from .maths import reduce_sum
from .values import operands, tensor


@v1()
def mean_pairwise_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
) -> Any:
    """The mean over pairs i < j of an example of ((y_i - y_j) - (t_i - t_j))**2.

    It is 2 (n sum d**2 - (sum d)**2) / (n (n - 1)) of the n differences d = y - t.

    Args:
        labels: t, (batch, ...).
        predictions: y.
        weights: a number, or one for each example, (batch) or (batch, 1, ...).
        scope: names the operations.
        loss_collection: where the graph lists the sum over examples; None for nowhere.

    Source: Eigen, Puhrsch and Fergus, "Depth map prediction from a single image using a
        multi-scale deep network", 2014, equation 1.
    """
    y, t = operands(predictions, labels)
    y, t = (x if x.dtype.is_floating else cast(x, "float32") for x in (y, t))
    d = ops.reshape(y - t, (ops.shape(y)[0], -1))
    count = reduce_sum(lookup("OnesLike")(d), [1])
    squares, sums = reduce_sum(d * d, [1]), reduce_sum(d, [1])
    each = 2.0 * lookup("DivNoNan")(count * squares - sums * sums, count * (count - 1.0))
    w = tensor(weights, d.dtype)
    w = ops.reshape(w, (-1,)) if w.shape.rank else w
    return compute_weighted_loss(each, w, scope, loss_collection, "weighted_sum")
