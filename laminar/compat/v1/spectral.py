"""`tf.spectral`: Fourier and cosine transforms."""

from __future__ import annotations

from .face import Line, face
from .signal import SPECTRAL

NAMES: dict[str, Line] = {**SPECTRAL}

__getattr__, __dir__ = face(__name__, NAMES)
