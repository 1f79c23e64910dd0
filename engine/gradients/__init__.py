"""Reverse mode: as graph extension, and as an eager tape over the same registered gradients."""

from ..late import late

__getattr__, __dir__, __all__ = late(__name__, __file__)
