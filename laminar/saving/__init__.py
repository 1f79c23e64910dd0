"""Saving and loading: models, weights, configs. Nothing that is loaded can run code.

What makes models of files is loaded when it is asked for: reading the files alone needs no layers.
"""

from laminar.engine.late import late

__getattr__, __dir__, __all__ = late(__name__, __file__)
