"""Conditions and loops, as operations with graphs inside and as dataflow."""

from ...late import late

__getattr__, __dir__, __all__ = late(__name__, __file__)
