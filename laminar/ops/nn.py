"""`laminar.ops.nn`: what layers and losses are made of."""

from .activations import *  # noqa: F403  # each file lists its public names in __all__
from .attention import *  # noqa: F403  # the names of its __all__
from .convolution import *  # noqa: F403  # the names of its __all__
from .ctc import *  # noqa: F403  # the names of its __all__
from .encoding import *  # noqa: F403  # the names of its __all__
from .losses import *  # noqa: F403  # the names of its __all__
from .math import polar as polar
from .math import psnr as psnr
from .normalization import *  # noqa: F403  # the names of its __all__
from .patches import fold as fold
from .patches import unfold as unfold
from .pooling import *  # noqa: F403  # the names of its __all__
