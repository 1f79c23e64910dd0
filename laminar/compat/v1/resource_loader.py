"""`tf.resource_loader`: files beside the program."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    name: f".beside:{name}"
    for name in (
        "get_data_files_path",
        "get_path_to_datafile",
        "get_root_dir_with_all_resources",
        "load_resource",
        "readahead_file_path",
    )
}

__getattr__, __dir__ = face(__name__, NAMES)
