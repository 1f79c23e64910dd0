"""`laminar.ops.numpy`: the functions that NumPy has too."""

from .arithmetic import *  # noqa: F403  # each file lists its public names in __all__
from .compare import *  # noqa: F403  # the names of its __all__
from .counting import *  # noqa: F403  # the names of its __all__
from .creation import *  # noqa: F403  # the names of its __all__
from .indexing import *  # noqa: F403  # the names of its __all__
from .join import *  # noqa: F403  # the names of its __all__
from .linalg import slogdet as slogdet
from .manipulation import *  # noqa: F403  # the names of its __all__
from .mathematics import *  # noqa: F403  # the names of its __all__
from .matrices import *  # noqa: F403  # the names of its __all__
from .nan_statistics import *  # noqa: F403  # the names of its __all__
from .padding import *  # noqa: F403  # the names of its __all__
from .products import *  # noqa: F403  # the names of its __all__
from .reduction import *  # noqa: F403  # the names of its __all__
from .rounding import *  # noqa: F403  # the names of its __all__
from .statistics import *  # noqa: F403  # the names of its __all__
from .vectorization import vectorize as vectorize
from .window_functions import *  # noqa: F403  # the names of its __all__
