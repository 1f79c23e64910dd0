"""The arguments that all optimizers have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from laminar.engine.errors import InvalidArgumentError, did_you_mean

from .checks import fraction, positive


class CommonOptions(TypedDict, total=False):
    """The arguments that every optimizer takes, but for its weight decay; see `Optimizer`."""

    clipnorm: float | None
    clipvalue: float | None
    global_clipnorm: float | None
    use_ema: bool
    ema_momentum: float
    ema_overwrite_frequency: int | None
    loss_scale_factor: float | None
    gradient_accumulation_steps: int | None
    name: str | None
    lazy: bool


class Options(CommonOptions, total=False):
    """The arguments that every optimizer takes; see `Optimizer`."""

    weight_decay: float | None


def check_options(who: str, options: Mapping[str, Any], unknown: Mapping[str, Any]) -> None:
    """Check the common arguments of an optimizer.

    Args:
        who: its class, for the errors.
        options: at least `Options`, by name.
        unknown: the arguments that it does not have.

    Raises:
        InvalidArgumentError: an argument is unknown or out of range, or two ways of clipping.
    """
    for name in unknown:
        known = [key for key in (*options, "learning_rate") if not key.startswith("_")]
        raise InvalidArgumentError(
            f"{who}: there is no argument {name!r}",
            remedy=did_you_mean("learning_rate" if name == "lr" else name, known, 1),
        )
    limits = ("clipnorm", "clipvalue", "global_clipnorm")
    clips = {key: options[key] for key in limits if options[key] is not None}
    if len(clips) > 1:
        raise InvalidArgumentError(
            f"{who}: only one of {', '.join(limits)} can be set, got {clips}"
        )
    positive(who, **clips)
    steps = options["gradient_accumulation_steps"]
    if steps is not None and not (isinstance(steps, int) and steps >= 2):
        raise InvalidArgumentError(
            f"{who}: gradient_accumulation_steps must be an integer of at least 2, got {steps}",
            remedy="leave it out (None) to update at every step",
        )
    if not options["use_ema"]:
        return
    fraction(who, ema_momentum=options["ema_momentum"])
    every = options["ema_overwrite_frequency"]
    if every is not None and not (isinstance(every, int) and every >= 1):
        raise InvalidArgumentError(
            f"{who}: ema_overwrite_frequency must be a positive integer or None, got {every}"
        )
