"""Byte strings. On the host alone."""

from ...late import late

__getattr__, __dir__, __all__ = late(__name__, __file__)
