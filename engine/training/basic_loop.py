"""A loop that calls a function of the user's until the supervisor says stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import AbortedError
from .supervisor import Supervisor


def basic_train_loop(
    supervisor: Supervisor,
    train_step_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    master: str = "",
) -> None:
    """Call a function again and again, in sessions of a supervisor.

    A session that is lost (AbortedError) is made again; other errors end the loop and are raised.

    Args:
        supervisor: makes the sessions, and says when to stop.
        train_step_fn: called as `train_step_fn(session, *args, **kwargs)`.
        args, kwargs: its arguments.
        master: the target.

    Examples:
        >>> with engine.Graph().as_default():
        ...     step = engine.get_or_create_global_step()
        ...     more = step.assign_add(1)
        ...     supervisor = engine.Supervisor(logdir="run")
        ...
        ...     def train(session, supervisor):
        ...         if session.run(more) == 3:
        ...             supervisor.request_stop()
        ...
        ...     engine.basic_train_loop(supervisor, train, args=(supervisor,))
    """
    positional, keywords = tuple(args or ()), dict(kwargs or {})
    should_retry = True
    while should_retry:
        try:
            should_retry = False
            with supervisor.managed_session(master) as session:
                while not supervisor.should_stop():
                    train_step_fn(session, *positional, **keywords)
        except AbortedError:
            should_retry = True
