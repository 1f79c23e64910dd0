"""Pages of the site that are made of the repository's other files, and of what is public.

`mkdocs build -f docs/mkdocs.yml` calls `on_files`. A page of the reference lists the names of one
package; mkdocstrings reads each one's signature and docstring from its source.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
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
    "laminar.ops": (
        "Functions of tensors, with NumPy's arguments and Keras's promotion. Where a function says "
        "no more, `x` is a tensor, or what a tensor can be made of, of any shape; the result has "
        "its shape. The shapes of `x1` and `x2` broadcast, and their types promote. Shapes that do "
        "not fit are a ShapeError, types a DTypeError."
    ),
    "laminar.ops.image": "Functions of images.",
    "laminar.random": "Random numbers that repeat.",
    "laminar.models": "Layers that are trained, evaluated and saved together.",
    "laminar.losses": "How far predictions are from labels.",
    "laminar.metrics": "What is counted over batches.",
    "laminar.optimizers": "How variables follow gradients.",
    "laminar.optimizers.schedules": "Rates that change with the step.",
    "laminar.callbacks": "Objects that follow training, and may steer it.",
    "laminar.initializers": "How weights begin.",
    "laminar.regularizers": "What is added to a loss for the sake of the weights.",
    "laminar.constraints": "What weights are held to.",
    "laminar.activations": "Functions that layers apply.",
    "laminar.quantizers": "Weights and products in few bits.",
    "laminar.dtype_policies": "The types in which layers compute and keep their weights.",
    "laminar.datasets": "Pipelines of examples, and data sets to try things out with.",
    "laminar.saving": "Files of models.",
    "laminar.export": "Files that run without the code that made them.",
    "laminar.distribute": "Several devices, processes and machines.",
    "laminar.engine": "Graphs, sessions, functions, state.",
    "laminar.engine.summary": "What TensorBoard shows.",
    "laminar.engine.errors": "The errors that laminar raises.",
    "laminar.profiler": "What ran when, and how fast.",
    "laminar.applications": "Networks that are ready to use.",
    "laminar.distillation": "Models that learn from others.",
    "laminar.bounding_boxes": "Boxes around what is in images.",
    "laminar.visualization": "Images with what was found in them.",
    "laminar.wrappers": "Models for scikit-learn.",
    "laminar.preprocessing": "Older ways to prepare data.",
    "laminar.config": "Settings of the process.",
    "laminar.backend": "Types and names, for code written for Keras.",
    "laminar.tree": "Structures of tuples, lists and dicts.",
    "laminar.typing": "Types for annotations.",
    "laminar.utils": "Helpers.",
}

EXAMPLES = (
    "Examples have `np` (NumPy), `laminar`, and of it `engine`, `layers` and `ops`; "
    "numbers are shown with four digits."
)


def page_of(source: str) -> str:
    """A file of the repository as a page; its links lead to pages, or are text."""
    targets = {path: page for page, path in PAGES.items()}

    def link(found: re.Match[str]) -> str:
        page = targets.get(found[2])
        return f"[{found[1]}]({page})" if page else found[1]

    return _LINK.sub(link, (ROOT / source).read_text(encoding="utf-8"))


def exported(package: str) -> list[str]:
    """The names that a package gives away: its own, and those it imports `as` what they are.

    This is the rule by which type checkers tell them from what a module imports for itself; the
    `.pyi` file says it where a package loads its names late.
    """
    module = import_module(package)
    if hasattr(module, "__all__"):
        return list(module.__all__)
    source = Path(str(module.__file__))
    stub = source.with_suffix(".pyi")
    names = set()
    for node in ast.parse((stub if stub.exists() else source).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            names.update(exported(f"{package.rsplit('.', 1)[0]}.{node.module}"))
        elif isinstance(node, ast.ImportFrom):
            names.update(alias.asname for alias in node.names if alias.asname)
    return [name for name in names if not name.startswith("_")]


def public(package: str) -> Iterator[str]:
    """Where the public classes and functions of a package are defined, in the order of names."""
    module = import_module(package)
    for name in sorted(exported(package), key=str.lower):
        thing: Any = getattr(module, name)
        home = getattr(thing, "__module__", "") or ""
        where = getattr(thing, "__qualname__", "<")  # `engine.trace` is of a room above, see there
        is_ours = home.split(".")[0] == "laminar" and "<" not in where
        if is_ours and (inspect.isclass(thing) or callable(thing)):
            yield f"{home}.{where}"


def reference() -> dict[str, str]:
    """The page of each package. What several have stands with the first but for the widest two."""
    homes: dict[str, str] = {}
    for package in sorted(PACKAGES, key=lambda p: (p == "laminar", p == "laminar.engine")):
        for path in public(package):
            homes.setdefault(path, package)
    pages = {}
    for package, what in PACKAGES.items():
        lines = [f"# {package}", "", f"{what} {EXAMPLES}", ""]
        for path in dict.fromkeys(public(package)):
            home = homes[path]
            name = path.rsplit(".", 1)[-1]
            if home == package:
                lines += [f"::: {path}", ""]
            else:
                lines += [f"## {name}", "", f"See [{home}]({home}.md#{path}).", ""]
        pages[f"api/{package}.md"] = "\n".join(lines)
    return pages


def speed() -> dict[str, str]:
    """The page of what was measured last, and its plots."""
    source = ROOT / "benchmarks" / "page.py"
    spec = importlib.util.spec_from_file_location("benchmarks_page", source)
    assert spec is not None
    assert spec.loader is not None
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    results = ROOT / "benchmarks" / "results" / "cpu.json"
    made: dict[str, str] = page.pages(json.loads(results.read_text(encoding="utf-8")))
    return made


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made."""
    from mkdocs.structure.files import File

    made = {page: page_of(source) for page, source in PAGES.items()}
    made |= reference()
    made |= speed()
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_config(config: Any) -> Any:
    """The reference has a page for each package."""
    for entry in config.nav:
        if isinstance(entry, dict) and "Reference" in entry:
            entry["Reference"] = [f"api/{package}.md" for package in PACKAGES]
    return config
