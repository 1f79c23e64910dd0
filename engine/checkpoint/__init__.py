"""Checkpoints as files: TensorFlow's format V2, written and read; free of graphs."""

from typing import TYPE_CHECKING

from ..late import late

if TYPE_CHECKING:
    from .entries import format_slice as format_slice
    from .entries import parse_slice as parse_slice
    from .files import checkpoint_exists as checkpoint_exists
    from .files import remove_checkpoint as remove_checkpoint
    from .reader import CheckpointReader as CheckpointReader
    from .state import CheckpointState as CheckpointState
    from .state import get_checkpoint_state as get_checkpoint_state
    from .state import latest_checkpoint as latest_checkpoint
    from .state import list_variables as list_variables
    from .state import load_checkpoint as load_checkpoint
    from .state import load_variable as load_variable
    from .state import write_checkpoint_state as write_checkpoint_state
    from .writer import Part as Part
    from .writer import merge_checkpoints as merge_checkpoints
    from .writer import write_checkpoint as write_checkpoint

__getattr__, __dir__ = late(
    __name__,
    {
        "entries": ("format_slice", "parse_slice"),
        "files": ("checkpoint_exists", "remove_checkpoint"),
        "reader": ("CheckpointReader",),
        "state": (
            "CheckpointState",
            "get_checkpoint_state",
            "latest_checkpoint",
            "list_variables",
            "load_checkpoint",
            "load_variable",
            "write_checkpoint_state",
        ),
        "writer": ("Part", "merge_checkpoints", "write_checkpoint"),
    },
)
