"""A picture in a notebook that is drawn anew in its place."""

from __future__ import annotations

import sys
from typing import Any


class NotebookPicture:
    """Shows PNG pictures in the output of a notebook's cell, each in the place of the last."""

    def __init__(self) -> None:
        self._handle: Any = None

    @property
    def is_shown(self) -> bool:
        """Whether there has been a picture."""
        return self._handle is not None

    def show(self, picture: bytes) -> None:
        """Show a picture; to be called in a notebook only."""
        display = sys.modules["IPython.display"]
        image = display.Image(data=picture, format="png")
        if self._handle is None:
            self._handle = display.display(image, display_id=True)
        else:
            self._handle.update(image)
