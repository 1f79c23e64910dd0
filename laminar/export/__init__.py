"""Functions of models as files: graphs and variables, which run without the code that made them.

Reading a file loads what running needs; what writes one is loaded when it is asked for.
"""

from typing import TYPE_CHECKING

from laminar.engine.lazy import lazy_names

if TYPE_CHECKING:
    from .archive import ExportArchive as ExportArchive
    from .exported import Exported as Exported
    from .exported import load as load
    from .objects import save as save

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "ExportArchive": ".archive",
        "Exported": ".exported",
        "load": ".exported",
        "save": ".objects",
    },
)
