"""The command line: what commands there are, and how what they find is printed.

A command gives a `Found`: data, which `--json` prints, and what people read. Exit codes: 0 where
all went well, 1 where a file or a value is wrong, 2 for a command that is used wrongly, 130 for
Ctrl-C.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Sequence
from types import ModuleType

import laminar
from laminar.engine.errors import LaminarError

from .found import Found
from .printing import show

# By name: the module, which is loaded when the command is given, and what it does.
_COMMANDS = {
    "info": ("info", "the version, the processor, devices, caches, and what is missing and why"),
    "summary": ("summarizing", "what a file holds: a model, weights, a checkpoint, a graph, ..."),
    "predict": ("predicting", "what a model gives for the inputs of a file"),
    "view": ("viewing", "a page that shows the graph of a model, an export, or a MetaGraph"),
    "serve": ("serving", "a model that answers over HTTP"),
    "cache": ("caching", "the native code that is kept on disk"),
}
# Commands whose arguments are read elsewhere: `main(argv)` of a module gives the exit code.
_OTHERS = {
    "launch": ("laminar.distribute.launch", "run a program on several processes or machines"),
    "certs": ("laminar.distribute.certs", "make the certificates of a cluster"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; gives the exit code.

    Args:
        argv: the arguments, by default those of the process.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in _OTHERS:
        return _other(arguments[0], arguments[1:])
    command = next((a for a in arguments if a in _COMMANDS), None)
    module = None
    if command is not None:
        module = importlib.import_module(f"laminar.commands.{_COMMANDS[command][0]}")
    options = _parser(command, module).parse_args(arguments)
    assert module is not None
    try:
        found = module.run(options)
        _print(found, options.json)
    except LaminarError as error:
        return _fail(error.message, error.remedy)
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _fail(f"{error.filename or 'a file'}: {error.strerror or error}")
    except KeyboardInterrupt:
        return 130
    return 0


def _parser(command: str | None, module: ModuleType | None) -> argparse.ArgumentParser:
    """What reads arguments; of the commands, the one that is given knows what it takes."""
    parser = argparse.ArgumentParser("laminar", description="A deep-learning toolkit.")
    parser.add_argument("--version", action="version", version=f"laminar {laminar.version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (_, about) in (_COMMANDS | _OTHERS).items():
        sentence = about if about.endswith(".") else f"{about}."
        added = commands.add_parser(name, help=about, description=sentence)
        if name == command and module is not None:
            added.add_argument("--json", action="store_true", help="print JSON, for programs")
            module.add_arguments(added)
    return parser


def _other(name: str, arguments: list[str]) -> int:
    place, _ = _OTHERS[name]
    try:
        module = importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not place.startswith(error.name):
            return _fail(f"{name} needs the package {error.name}", f"pip install {error.name}")
        return _fail(f"this version of laminar has no command {name!r}")
    try:
        return int(module.main(arguments) or 0)
    except LaminarError as error:
        return _fail(error.message, error.remedy)
    except KeyboardInterrupt:
        return 130


def _print(found: Found, is_json: bool) -> None:
    if is_json:
        json.dump(found.data, sys.stdout, indent=2, allow_nan=False, default=str)
        sys.stdout.write("\n")
    elif found.shown:
        show(found.shown)
    sys.stdout.flush()


def _fail(message: str, remedy: str | None = None) -> int:
    line = " ".join(message.split())
    print(f"laminar: {line}" + (f" ({remedy})" if remedy else ""), file=sys.stderr)
    return 1
