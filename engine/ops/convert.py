"""Tensors of values, for programs that define ops of their own."""

from .core.arrays import to_array as to_array
from .core.convert import convert_to_tensor as convert_to_tensor
