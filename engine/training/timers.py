"""When a hook does its work: every so many steps, or every so many seconds."""

from __future__ import annotations

import time

from ..errors import InvalidArgumentError


class SecondOrStepTimer:
    """Says at which steps something is due: the first one, and then each so many steps or seconds.

    Args:
        every_secs: from one time to the next.
        every_steps: from one time to the next.

    Raises:
        InvalidArgumentError: both are given, or neither.

    Examples:
        >>> timer = engine.SecondOrStepTimer(every_steps=10)
        >>> timer.should_trigger_for_step(0)
        True
        >>> _ = timer.update_last_triggered_step(0)
        >>> timer.should_trigger_for_step(5), timer.should_trigger_for_step(10)
        (False, True)
    """

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        if (every_secs is None) == (every_steps is None):
            raise InvalidArgumentError(
                f"exactly one of every_secs and every_steps must be given, "
                f"got {every_secs} and {every_steps}"
            )
        self._every_secs = every_secs
        self._every_steps = every_steps
        self.reset()

    def reset(self) -> None:
        """Begin anew: the next step is due."""
        self._last_step: int | None = None
        self._last_time: float | None = None

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether something is due at a step."""
        if self._last_step is None:
            return True
        if step == self._last_step:
            return False
        if self._every_steps is not None:
            return step >= self._last_step + self._every_steps
        assert self._last_time is not None
        assert self._every_secs is not None
        return time.time() >= self._last_time + self._every_secs

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Note that it was done at a step.

        Returns:
            The seconds and the steps since it was done the last time; None for the first time.
        """
        now = time.time()
        if self._last_step is None or self._last_time is None:
            elapsed: tuple[float | None, int | None] = (None, None)
        else:
            elapsed = (now - self._last_time, step - self._last_step)
        self._last_step, self._last_time = step, now
        return elapsed

    def last_triggered_step(self) -> int | None:
        """The step at which it was done the last time."""
        return self._last_step


class NeverTriggerTimer(SecondOrStepTimer):
    """Nothing is ever due.

    Examples:
        >>> engine.NeverTriggerTimer().should_trigger_for_step(100)
        False
    """

    def __init__(self) -> None:
        super().__init__(every_steps=1)

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether something is due at a step: never."""
        return False
