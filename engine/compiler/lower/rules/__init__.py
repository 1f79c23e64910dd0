"""How ops are written as loop programs, one file per family."""

from . import adaptive_pooling as adaptive_pooling
from . import contractions as contractions
from . import convolution as convolution
from . import creation as creation
from . import cumulative as cumulative
from . import depthwise as depthwise
from . import einsum as einsum
from . import indexing as indexing
from . import joining as joining
from . import low_bits as low_bits
from . import pooling as pooling
from . import random as random
from . import reductions as reductions
from . import resample as resample
from . import scattering as scattering
from . import shaping as shaping
from . import sharding as sharding
from . import slicing as slicing
from . import sorting as sorting
from .table import LOWERINGS as LOWERINGS
from .table import Lowered as Lowered
