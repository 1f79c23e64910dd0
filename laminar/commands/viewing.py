"""laminar view: a page that shows the graph of a model, an export, or a MetaGraph."""

from __future__ import annotations

import argparse
import os
from typing import Any

from laminar.engine import Graph, import_meta_graph
from laminar.engine.errors import InvalidArgumentError
from laminar.utils import view_graph

from .found import Found
from .opening import EXPORTS, check_file, open_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("file", help="a .keras model, a .laminar export, or a .meta graph")
    parser.add_argument("--output", metavar="FILE", help="the page, by default FILE.html")
    parser.add_argument("--endpoint", help="the function of an export, by default the first")
    parser.add_argument("--open", action="store_true", help="open it in a browser")


def run(options: argparse.Namespace) -> Found:
    """Write the page."""
    path = options.output or f"{os.path.basename(options.file)}.html"
    written = view_graph(_target(options), path, title=os.path.basename(options.file))
    if options.open:
        import webbrowser  # what the command does not need is not loaded

        webbrowser.open(written.resolve().as_uri())
    return Found({"page": str(written)}, [str(written)])


def _target(options: argparse.Namespace) -> Any:
    if options.file.endswith(".meta"):
        check_file(options.file)
        with Graph().as_default() as graph:
            import_meta_graph(options.file)
        return graph
    model = open_model(options.file)
    if not options.file.endswith(EXPORTS):
        return model
    name = options.endpoint or next(iter(model.endpoints), "")
    if name not in model.endpoints:
        raise InvalidArgumentError(
            f"there is no endpoint {name!r}", remedy=f"it has {', '.join(model.endpoints)}"
        )
    return model.endpoints[name].graph
