"""BackupAndRestore: go on with a training that was interrupted."""

from __future__ import annotations

import os

from laminar.engine.errors import InvalidArgumentError
from laminar.paths import file_name

from .callback import Callback
from .checks import check_whole


class BackupAndRestore(Callback):
    """Keeps the state of a training in a folder; run again, `fit` goes on where it stood.

    The state is all that the result depends on: weights, optimizer, metrics, random generators, the
    place in the data and what the other callbacks remember. On a CPU the resumed training gives the
    same bits as one that was not interrupted. `fit(resume=folder)` does the same, keeps several
    states, and leaves them there. The data has to be given as before: arrays, an object that is
    indexed, or an iterable that yields the same batches again.

    Args:
        backup_dir: the folder, of this training alone.
        save_freq: "epoch", or the number of batches after which to save.
        double_checkpoint: whether to keep the state before the last one, too.
        delete_checkpoint: whether to remove the files once training has ended.

    Raises:
        InvalidArgumentError: no folder, or another `save_freq`.

    Examples:
        >>> model = laminar.Sequential([layers.Input((1,)), layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> backup = laminar.callbacks.BackupAndRestore("backup")  # a run that was cut off goes on
        >>> history = model.fit(np.ones((8, 1)), np.ones((8, 1)), callbacks=[backup], verbose=0)
    """

    def __init__(
        self,
        backup_dir: str | os.PathLike[str],
        save_freq: int | str = "epoch",
        double_checkpoint: bool = False,
        delete_checkpoint: bool = True,
    ) -> None:
        super().__init__()
        self.backup_dir = file_name(backup_dir, "BackupAndRestore")
        if not self.backup_dir:
            raise InvalidArgumentError(
                "BackupAndRestore: backup_dir is empty", remedy='backup_dir="backup"'
            )
        if isinstance(save_freq, str) and save_freq != "epoch":
            raise InvalidArgumentError(
                f"BackupAndRestore: save_freq must be 'epoch' or a number of batches, "
                f"got {save_freq!r}",
                remedy="save_freq='epoch'",
            )
        if not isinstance(save_freq, str):
            check_whole("BackupAndRestore", 1, save_freq=save_freq)
        self.save_freq = save_freq
        self.double_checkpoint = double_checkpoint
        self.delete_checkpoint = delete_checkpoint
