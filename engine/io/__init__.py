"""Files and formats: records, checksums, examples, images."""

from ..late import late

__getattr__, __dir__, __all__ = late(__name__, __file__)
