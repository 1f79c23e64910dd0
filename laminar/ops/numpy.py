"""`laminar.ops.numpy`: the functions that NumPy has too."""

from .arithmetic import *  # noqa: F403  # each file lists its public names in __all__
from .compare import *  # noqa: F403
from .counting import *  # noqa: F403
from .creation import *  # noqa: F403
from .indexing import *  # noqa: F403
from .join import *  # noqa: F403
from .linalg import slogdet as slogdet
from .manipulation import *  # noqa: F403
from .mathematics import *  # noqa: F403
from .products import *  # noqa: F403
from .reduction import *  # noqa: F403
from .statistics import *  # noqa: F403
from .vectorization import vectorize as vectorize
