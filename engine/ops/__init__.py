"""What can be computed: the one table of ops, and one file per family."""

from ..late import late

__getattr__, __dir__, __all__ = late(__name__, __file__)
