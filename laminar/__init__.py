"""laminar: a Keras-style deep-learning toolkit on its own dataflow engine.

Every public name is in `__init__.pyi`; what stands behind it is loaded when it is first used, so
that `import laminar` takes no time.
"""

from __future__ import annotations

from .engine.late import late

__version__ = "0.1.0"


def version() -> str:
    """The version of laminar."""
    return __version__


__getattr__, __dir__, __all__ = late(__name__, __file__)
