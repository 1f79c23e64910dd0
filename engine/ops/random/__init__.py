"""Random numbers, and the state that they are drawn from."""

from ...late import late

__getattr__, __dir__, __all__ = late(__name__, __file__)
