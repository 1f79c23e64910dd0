"""`tf.io.gfile`: files and folders."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "GFile": ".files:GFile",
    "copy": ".files:copy",
    "exists": ".files:exists",
    "glob": ".files:matching",
    "isdir": ".files:is_directory",
    "listdir": ".files:list_directory",
    "makedirs": ".files:make_dirs",
    "mkdir": ".files:make_dir",
    "remove": ".files:remove",
    "rename": ".files:rename",
    "rmtree": ".files:delete_recursively",
    "stat": ".files:stat",
    "walk": ".files:walk",
}

__getattr__, __dir__ = face(__name__, NAMES)
