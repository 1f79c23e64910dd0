"""`laminar.ops.image`: images resized, cropped, recoloured, filtered.

Images are (batch, height, width, channels) or (height, width, channels), or with the channels in
front, as `data_format` says.
"""

from .color import *  # noqa: F403  # each file lists its public names in __all__
from .filters import *  # noqa: F403  # the names of its __all__
from .framing import *  # noqa: F403  # the names of its __all__
from .warping import *  # noqa: F403  # the names of its __all__
