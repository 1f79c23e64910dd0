"""`laminar.ops`: what can be computed with tensors, under Keras's names.

Every function takes tensors, variables, arrays, nested lists and numbers, brings operands to a
common element type (see engine/ops/core/promotion.py), and computes at once; while a function is
traced it adds to the graph, and on the symbolic tensors of a functional model it is recorded.
"""

from laminar.engine.late import late

__getattr__, __dir__, __all__ = late(__name__, __file__)
