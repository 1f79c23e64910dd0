"""Files beside the program."""

from __future__ import annotations

import os
import sys


def get_data_files_path() -> str:
    """The folder of the file of whoever calls."""
    return os.path.dirname(sys._getframe(1).f_code.co_filename)


def get_root_dir_with_all_resources() -> str:
    """The folder of the file of whoever calls: programs are not packed otherwise here."""
    return os.path.dirname(sys._getframe(1).f_code.co_filename)


def get_path_to_datafile(path: str) -> str:
    """The path of a file, given from the folder of the file of whoever calls."""
    return os.path.join(os.path.dirname(sys._getframe(1).f_code.co_filename), path)


def load_resource(path: str) -> bytes:
    """The bytes of a file, given from the folder of the file of whoever calls."""
    folder = os.path.dirname(sys._getframe(1).f_code.co_filename)
    with open(os.path.join(folder, path), "rb") as file:
        return file.read()


def readahead_file_path(path: str, readahead: str = "128M") -> str:
    """The path as it is."""
    return path
