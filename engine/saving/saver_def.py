"""SaverDef: which operations of a graph save and restore, as data.

    SaverDef {string filename_tensor_name = 1, string save_tensor_name = 2,
              string restore_op_name = 3, int32 max_to_keep = 4, bool sharded = 5,
              float keep_checkpoint_every_n_hours = 6, CheckpointFormatVersion version = 7}

Source: tensorflow/core/protobuf/saver.proto.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from ..wire import BYTES, FIXED32, VARINT, Kind, Message, float32, integer, text

_KIND = Kind("a SaverDef", "export the graph again")


@dataclass(frozen=True)
class SaverDef:
    """How a graph is saved and restored.

    Attributes:
        filename_tensor_name: the tensor that is fed with the prefix: "save/filename:0".
        save_tensor_name: the tensor whose evaluation saves.
        restore_op_name: the operation that restores.
        max_to_keep: how many checkpoints are kept, 0 for all.
        sharded: whether each device writes a file of its own.
        keep_checkpoint_every_n_hours: besides, one of so many hours is kept for ever.

    V1 and V2 are the formats of checkpoints that there have been.

    Examples:
        >>> with engine.Graph().as_default():
        ...     w = engine.Variable(1.0)
        ...     engine.Saver(max_to_keep=3).as_saver_def().max_to_keep
        3
    """

    V1: ClassVar[int] = 1
    V2: ClassVar[int] = 2

    filename_tensor_name: str
    save_tensor_name: str
    restore_op_name: str
    max_to_keep: int = 5
    sharded: bool = False
    keep_checkpoint_every_n_hours: float = 10000.0

    def to_bytes(self) -> bytes:
        """The binary form."""
        return b"".join(
            (
                text(1, self.filename_tensor_name),
                text(2, self.save_tensor_name),
                text(3, self.restore_op_name),
                integer(4, self.max_to_keep),
                integer(5, int(self.sharded)),
                float32(6, self.keep_checkpoint_every_n_hours),
                integer(7, SaverDef.V2),
            )
        )

    @staticmethod
    def from_bytes(data: bytes) -> SaverDef:
        """Read the binary form; DataLossError when it is none."""
        message = Message(data, _KIND)
        names = {1: "", 2: "", 3: ""}
        most, sharded, hours = 5, False, 10000.0
        for number, wire in message.fields():
            if number in names and wire == BYTES:
                names[number] = message.text()
            elif number == 4 and wire == VARINT:
                most = message.signed()
            elif number == 5 and wire == VARINT:
                sharded = bool(message.varint())
            elif number == 6 and wire == FIXED32:
                hours = message.float32()
            else:
                message.skip(wire)
        if not all(names.values()) or most < 0 or not math.isfinite(hours):
            raise message.damage("names of operations are missing")
        return SaverDef(names[1], names[2], names[3], most, sharded, hours)


def in_scope(saver: SaverDef, scope: str) -> SaverDef:
    """The same with a scope, "" or with "/" at the end, before the names."""
    return replace(
        saver,
        filename_tensor_name=scope + saver.filename_tensor_name,
        save_tensor_name=scope + saver.save_tensor_name,
        restore_op_name=scope + saver.restore_op_name,
    )
