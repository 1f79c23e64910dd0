"""Arithmetic without NumPy's warnings: IEEE values are the result, and nothing is printed.

    before = hush()
    try: ...
    finally: restore(before)

This is `np.errstate(all="ignore")`, which makes its setting anew each time and takes as long as
three small ops; where NumPy keeps its setting elsewhere than in 2.0 to 2.4, it is `np.errstate`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

hush: Callable[[], Any]
restore: Callable[[Any], None]

try:
    from numpy._core.umath import _extobj_contextvar, _make_extobj

    hush = partial(_extobj_contextvar.set, _make_extobj(all="ignore"))
    restore = _extobj_contextvar.reset
except (ImportError, AttributeError, TypeError):

    def hush() -> Any:
        """Warn of nothing from now on, in this thread; gives what `restore` takes."""
        state = np.errstate(all="ignore")
        state.__enter__()
        return state

    def restore(before: Any) -> None:
        """Warn of what one was warned of before."""
        before.__exit__(None, None, None)
