"""What all ops stand on: the table, dispatch, elementwise rows, and what every graph has."""

from ...late import late

__getattr__, __dir__, __all__ = late(__name__, __file__)
