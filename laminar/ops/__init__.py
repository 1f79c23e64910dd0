"""`laminar.ops`: what can be computed with tensors, under Keras's names.

Every function takes tensors, variables, arrays, nested lists and numbers, brings operands to a
common element type (see engine/ops/core/promotion.py), and computes at once; while a function is
traced it adds to the graph, and on the symbolic tensors of a functional model it is recorded.
"""

from . import core as core
from . import image as image
from . import linalg as linalg
from . import nn as nn
from . import numpy as numpy
from .control import *  # noqa: F403  # each file lists its public names in __all__
from .core import *  # noqa: F403  # the names of its __all__
from .linalg import *  # noqa: F403  # the names of its __all__
from .math import *  # noqa: F403  # the names of its __all__
from .nn import *  # noqa: F403  # the names of its __all__
from .numpy import *  # noqa: F403  # the names of its __all__
from .rearrangement import *  # noqa: F403  # the names of its __all__
from .recording import Recorder as Recorder
from .recording import public as public
from .recording import set_recorder as set_recorder
from .signal import *  # noqa: F403  # the names of its __all__
