"""`core.convert`: programs that define ops of their own import it without its room."""

import sys

from .core import convert

sys.modules[__name__] = convert
