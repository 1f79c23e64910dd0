"""`laminar.Variable`: the engine's, to which `initializers` has told their names."""

from __future__ import annotations

from . import initializers as _initializers  # noqa: F401  # loaded, it gives its names
from .engine.state import Variable as Variable
