"""Functions of models as files: graphs and variables, which run without the code that made them."""

from .archive import ExportArchive as ExportArchive
from .exported import Exported as Exported
from .exported import load as load
