"""`array.shape`: programs that define ops of their own import it without its room."""

import sys

from .array import shape

sys.modules[__name__] = shape
