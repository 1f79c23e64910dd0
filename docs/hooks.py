"""Pages of the site that are made of the repository's other files, and of what is public.

`mkdocs build -f docs/mkdocs.yml` calls `on_files`. A page of the reference lists the names of one
package; mkdocstrings reads each one's signature and docstring from its source.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

# page -> the file that it is made of
PAGES = {
    "extending.md": "CONTRIBUTING.md",
    "architecture.md": "ARCHITECTURE.md",
    "examples.md": "examples/README.md",
}
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)]+)\)")

# The packages of the reference, and what stands in front of their pages.
PACKAGES = {
    "laminar": "What most programs need.",
    "laminar.layers": "What models are made of.",
    "laminar.ops": "Functions of tensors, with NumPy's arguments and Keras's promotion.",
    "laminar.random": "Random numbers that repeat.",
    "laminar.losses": "How far predictions are from labels.",
    "laminar.metrics": "What is counted over batches.",
    "laminar.optimizers": "How variables follow gradients.",
    "laminar.optimizers.schedules": "Rates that change with the step.",
    "laminar.callbacks": "Objects that follow training, and may steer it.",
    "laminar.initializers": "How weights begin.",
    "laminar.regularizers": "What is added to a loss for the sake of the weights.",
    "laminar.constraints": "What weights are held to.",
    "laminar.activations": "Functions that layers apply.",
    "laminar.datasets": "Pipelines of examples, and data sets to try things out with.",
    "laminar.saving": "Files of models.",
    "laminar.export": "Files that run without the code that made them.",
    "laminar.distribute": "Several devices, processes and machines.",
    "laminar.engine": "Graphs, sessions, functions, state.",
    "laminar.applications": "Networks that are ready to use.",
    "laminar.utils": "Helpers.",
}


def page_of(source: str) -> str:
    """A file of the repository as a page; its links lead to pages, or are text."""
    targets = {path: page for page, path in PAGES.items()}

    def link(found: re.Match[str]) -> str:
        page = targets.get(found[2])
        return f"[{found[1]}]({page})" if page else found[1]

    return _LINK.sub(link, (ROOT / source).read_text(encoding="utf-8"))


def public(package: str) -> Iterator[str]:
    """Where the public classes and functions of a package are defined, in the order of names."""
    module = import_module(package)
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    for name in sorted(names, key=str.lower):
        thing: Any = getattr(module, name)
        home = getattr(thing, "__module__", "") or ""
        is_ours = home.split(".")[0] == "laminar" and hasattr(thing, "__qualname__")
        if is_ours and (inspect.isclass(thing) or callable(thing)):
            yield f"{home}.{thing.__qualname__}"


def reference() -> dict[str, str]:
    """The page of each package. What several have stands with the first but for the widest two."""
    homes: dict[str, str] = {}
    for package in sorted(PACKAGES, key=lambda p: (p == "laminar", p == "laminar.engine")):
        for path in public(package):
            homes.setdefault(path, package)
    pages = {}
    for package, what in PACKAGES.items():
        lines = [f"# {package}", "", what, ""]
        for path in dict.fromkeys(public(package)):
            home = homes[path]
            name = path.rsplit(".", 1)[-1]
            if home == package:
                lines += [f"::: {path}", ""]
            else:
                lines += [f"## {name}", "", f"See [{home}]({home}.md#{path}).", ""]
        pages[f"api/{package}.md"] = "\n".join(lines)
    return pages


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made."""
    from mkdocs.structure.files import File

    made = {page: page_of(source) for page, source in PAGES.items()}
    made |= reference()
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_config(config: Any) -> Any:
    """The reference has a page for each package."""
    for entry in config.nav:
        if isinstance(entry, dict) and "Reference" in entry:
            entry["Reference"] = [f"api/{package}.md" for package in PACKAGES]
    return config
