"""Reverse mode: as graph extension, and as an eager tape over the same registered gradients."""

from ..ops.array.indexed_slices import CombinedSlices as CombinedSlices
from ..ops.array.indexed_slices import IndexedSlices as IndexedSlices
from ..ops.array.indexed_slices import mapped as mapped
from .backprop import backpropagate as backpropagate
from .forward import jvp as jvp
from .symbolic import gradients as gradients
from .tape import GradientTape as GradientTape
from .transforms import grad as grad
from .transforms import value_and_grad as value_and_grad
