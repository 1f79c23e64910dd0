"""`tf.gfile`: files and folders."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "GFile": ".files:GFile",
    "FastGFile": ".files:GFile",
    "Open": ".files:GFile",
    "Exists": ".files:exists",
    "IsDirectory": ".files:is_directory",
    "ListDirectory": ".files:list_directory",
    "MakeDirs": ".files:make_dirs",
    "MkDir": ".files:make_dir",
    "Remove": ".files:remove",
    "DeleteRecursively": ".files:delete_recursively",
    "Glob": ".files:matching",
    "Copy": ".files:copy",
    "Rename": ".files:rename",
    "Stat": ".files:stat",
    "Walk": ".files:walk",
}

__getattr__, __dir__ = face(__name__, NAMES)
