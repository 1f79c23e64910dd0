"""Checkpoints as files: TensorFlow's format V2, written and read; free of graphs."""

from ..late import late

__getattr__, __dir__, __all__ = late(__name__, __file__)
