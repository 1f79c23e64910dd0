"""Training over several devices and machines."""

from laminar.engine.late import late

__getattr__, __dir__, __all__ = late(__name__, __file__)
