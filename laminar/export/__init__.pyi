from .archive import ExportArchive as ExportArchive
from .exported import Exported as Exported
from .exported import load as load
from .objects import save as save
