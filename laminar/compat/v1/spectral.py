"""`tf.spectral`: Fourier and cosine transforms."""

from __future__ import annotations

from .face import face
from .signal import SPECTRAL

__getattr__, __dir__ = face(__name__, SPECTRAL)
