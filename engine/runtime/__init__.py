"""Running graphs: executor, sessions, the resources they keep."""

from ..late import late

__getattr__, __dir__, __all__ = late(__name__, __file__)
