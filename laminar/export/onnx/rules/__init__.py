"""The rules: importing this puts them all into the table."""

from . import activations as activations
from . import arrays as arrays
from . import indexing as indexing
from . import linear as linear
from . import loops as loops
from . import normalization as normalization
from . import reductions as reductions
from . import windows as windows
