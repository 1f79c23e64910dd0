"""`laminar` on the command line: `python -m laminar`, too."""

from .main import main as main
