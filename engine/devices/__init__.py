"""Devices: what owns memory and runs kernels; which kinds there are, and which exist here."""

from ..late import late

__getattr__, __dir__, __all__ = late(__name__, __file__)
