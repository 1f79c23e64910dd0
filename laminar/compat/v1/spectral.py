"""`tf.spectral`: Fourier transforms."""

from __future__ import annotations

from .face import face
from .signal import NAMES

__getattr__, __dir__ = face(__name__, NAMES)
