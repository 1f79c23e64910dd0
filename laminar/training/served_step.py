"""The step of a model that is trained by parameter servers."""

from __future__ import annotations

from typing import Any

from laminar.distribute import ParameterServer
from laminar.engine.errors import UnimplementedError
from laminar.naming import who

from .compiled import Compiled
from .served_values import ServedValues
from .server_step import ServerStep
from .server_sync_step import SyncServerStep
from .step import Step
from .step_on_servers import StepOnServers


def served_step(
    model: Any, compiled: Compiled, strategy: ParameterServer, kind: str, serial: Step
) -> Any:
    """Make it.

    Args:
        model: whose step it is; it is built.
        compiled: what it was compiled with.
        strategy: the servers and workers.
        kind: "train" or "test".
        serial: the same step in this process.

    Raises:
        UnimplementedError: the model runs eagerly, or has layers with a state for each example.
    """
    layers = model._laminar_flatten_layers()
    for what, is_so in (
        ("run_eagerly", model.run_eagerly),
        ("layers with a state for each example", any(getattr(x, "stateful", 0) for x in layers)),
    ):
        if is_so:
            raise UnimplementedError(
                f"{who(model)}: training by parameter servers does not go with {what}",
                remedy="leave it out, or train without a strategy",
            )
    others = [*compiled.steps.values()]
    found = [s.values for s in others if isinstance(s, StepOnServers)]
    found = [values for values in found if values.is_of(model, training=kind == "train")]
    values = found[0] if found else ServedValues(model, strategy)
    native = model.jit_compile is not False
    if kind == "train" and strategy.synchronous:
        return SyncServerStep(model, compiled, values, serial, native=native)
    return ServerStep(model, compiled, values, kind, serial, native=native)
