"""An interrupt, Ctrl-C, ends native code that takes long.

Python hears of a signal at once, but the main thread handles it only when it runs Python's own
code again: after the native code. So while it is in a plan that may take long, a thread listens to
the pipe that Python writes the numbers of signals to (`signal.set_wakeup_fd`), and has the plan
end; then the main thread raises what its handler raises, or begins the plan again where that raises
nothing.

State of a `_Listener`, which the main thread alone changes, but for `heard`:
    cancel: ends what runs, None where nothing does;
    heard: whether it was called;
    passes_to: who else wants to know of signals, -1 for nobody.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

from ..codegen.driver_words import CHECK_FAILED
from .executable import Executable


class _Listener:
    def __init__(self) -> None:
        self.cancel: Callable[[], object] | None = None
        self.heard = False
        self.passes_to = -1
        self._pipe, self.pipe = os.pipe()
        os.set_blocking(self.pipe, False)
        threading.Thread(target=self._listen, name="native-interrupts", daemon=True).start()

    def _listen(self) -> None:
        while numbers := os.read(self._pipe, 512):
            cancel, passes_to = self.cancel, self.passes_to
            if cancel is not None and signal.SIGINT in numbers:
                self.heard = True
                cancel()
            if passes_to >= 0:
                with contextlib.suppress(OSError):  # as Python's own writing does
                    os.write(passes_to, numbers)


class _Known:
    """The process's listener, made when something long is first run."""

    listener: _Listener | None = None

    @classmethod
    def forget(cls) -> None:
        """In a forked child its thread is gone."""
        cls.listener = None


def run_cancellable(context: Any, executable: Executable, objects: list[Any]) -> Any:
    """What a run on arrays gives, which ends early when the step, or a signal, cancels it.

    Raises:
        LaminarError: the step was cancelled.
        KeyboardInterrupt: or what else the handler of SIGINT raises.
    """
    executable.go_on()
    token = context.cancellation.register(executable.cancel)
    if token is None:
        raise context.cancelled
    run = executable.run
    try:
        is_cut_short = False
        if threading.current_thread() is threading.main_thread():
            found, is_cut_short = interruptible(lambda: run(objects), executable.cancel)
        else:
            found = run(objects)
        if type(found) is int and found == CHECK_FAILED:
            if context.cancelled is not None:
                raise context.cancelled
            if is_cut_short:
                executable.go_on()  # the handler of the signal lets the program go on
                found = run(objects)
        return found
    finally:
        context.cancellation.deregister(token)


def interruptible(run: Callable[[], Any], cancel: Callable[[], object]) -> tuple[Any, bool]:
    """Run something in the main thread that `cancel` ends early, and that a signal is to end.

    Returns:
        What it gives, and whether a signal ended it whose handler has raised nothing.

    Raises:
        KeyboardInterrupt: or what else the handler of SIGINT raises.
    """
    listener = _Known.listener
    if listener is None:
        listener = _Known.listener = _Listener()
    listener.heard = False
    before = signal.set_wakeup_fd(listener.pipe, warn_on_full_buffer=False)
    try:
        listener.passes_to = -1 if before == listener.pipe else before
        listener.cancel = cancel
        found = run()
        return found, listener.heard
    finally:
        listener.cancel = None
        signal.set_wakeup_fd(listener.passes_to, warn_on_full_buffer=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Known.forget)
