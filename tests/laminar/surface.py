"""What of Keras's public surface laminar has: names, arguments, defaults.

`surface.json` lists Keras's public names, so that the comparison needs no Keras. Run this file as
a script: without arguments it tells what is missing; `readme` writes the table of the README anew;
`digest` (with Keras installed) makes `surface.json`.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).parent
DIGEST = HERE / "surface.json"
README = HERE.parents[1] / "README.md"
BEGIN, END = "<!-- surface: begin -->\n", "<!-- surface: end -->\n"

# The classes whose methods are part of what users write, besides their constructors.
BASES = (
    "Model",
    "Sequential",
    "Layer",
    "Loss",
    "Metric",
    "Optimizer",
    "Variable",
    "Function",
    "Operation",
    "callbacks.Callback",
    "utils.PyDataset",
    "random.SeedGenerator",
)

# What is left out on purpose: bridges into other frameworks, and what Keras keeps for them.
LEFT_OUT = {
    "layers.FlaxLayer": "runs another framework",
    "layers.JaxLayer": "runs another framework",
    "layers.TFSMLayer": "runs another framework",
    "layers.TorchModuleWrapper": "runs another framework",
}
# Modules of Keras that are no part of the surface: shims for Keras 1 and 2.
SKIPPED = ("keras.legacy", "keras.src")

Entry = dict[str, Any]
Digest = dict[str, dict[str, Entry]]


# Reading a module


def walk(root: ModuleType) -> Iterator[tuple[str, ModuleType]]:
    """The public modules below `root` (and itself as ""), by their names without its own."""
    seen = {root.__name__}
    stack = [root]
    while stack:
        module = stack.pop(0)
        yield module.__name__.removeprefix(root.__name__).removeprefix("."), module
        for name, value in sorted(vars(module).items()):
            if not isinstance(value, ModuleType) or name.startswith("_"):
                continue
            path = f"{module.__name__}.{name}"
            if value.__name__ == path and path not in seen and not path.startswith(SKIPPED):
                seen.add(path)
                stack.append(value)


def describe(value: Any) -> Entry:
    """What a name stands for: its kind, and its own parameters as [name, default] or [name]."""
    if inspect.isclass(value):
        kind = "class"
    elif callable(value):
        kind = "function"
    else:
        return {"kind": "value"}
    return {"kind": kind, "parameters": parameters(value, inherited=False)}


def parameters(value: Any, inherited: bool = True) -> list[list[str]]:
    """The named parameters of something callable, each with its default, if it has one.

    A constructor that takes **kwargs passes them on to the one above: with `inherited`, its
    parameters count too.
    """
    found: dict[str, list[str]] = {}
    bases = value.__mro__ if inspect.isclass(value) else ()
    constructors = [vars(c)["__init__"] for c in bases if "__init__" in vars(c)]
    for layer in constructors[: None if inherited else 1] or [value]:
        try:
            signature = inspect.signature(layer)
        except (TypeError, ValueError):
            break
        for p in list(signature.parameters.values())[inspect.isclass(value) :]:
            if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and p.name not in found:
                found[p.name] = [p.name] if p.default is p.empty else [p.name, default(p.default)]
        if not any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
            break
    return list(found.values())


def default(value: Any) -> str:
    """A default as text; what is no plain value is "..."."""
    if isinstance(value, list | tuple):
        items = [default(v) for v in value]
        # (2, 2) and 2 mean the same
        return items[0] if len(set(items)) == 1 else "(" + ", ".join(items) + ")"
    if value is None or isinstance(value, bool | str):
        return repr(value)
    return repr(float(value)) if isinstance(value, int | float) else "..."


def digest_of(root: ModuleType) -> Digest:
    """The public names of a package, by module; methods of the base classes stand under them."""
    found: Digest = {}
    for path, module in walk(root):
        names = {
            name: describe(value)
            for name, value in sorted(vars(module).items())
            if not name.startswith("_") and not isinstance(value, ModuleType)
        }
        if names:
            found[path] = names
    for path in BASES:
        cls = resolve(root, path)
        found[f"{path}()"] = dict(methods(cls))
    return found


def methods(cls: Any) -> Iterator[tuple[str, Entry]]:
    """The public methods and properties of a class, without those that its backend adds."""
    names = {name for base in cls.__mro__ if is_of_keras(base) for name in vars(base)}
    for name in sorted(names):
        if name.startswith("_"):
            continue
        value = inspect.getattr_static(cls, name)
        if isinstance(value, property):
            yield name, {"kind": "value"}
        elif callable(getattr(cls, name)) and not inspect.isclass(getattr(cls, name)):
            yield name, describe(getattr(cls, name))


def is_of_keras(cls: type) -> bool:
    """Whether a class is Keras's own and there whatever the backend is."""
    module = cls.__module__
    return module.startswith("keras.") and (".backend." not in module or ".common." in module)


def resolve(root: ModuleType, path: str) -> Any:
    """What stands at a dotted path below a package; LookupError if there is nothing."""
    value: Any = root
    done = root.__name__
    for part in path.split(".") if path else []:
        done += f".{part}"
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(done)
            except ImportError as cause:
                raise LookupError(path) from cause
    return value


# Comparing


@dataclass
class Gaps:
    """What of one module of Keras is there, and what is not.

    Attributes:
        total: how many names Keras has.
        missing: names that are not there.
        arguments: by name, parameters that are not there.
        defaults: by name, parameters with another default: (parameter, Keras's, ours).
    """

    total: int = 0
    missing: list[str] = field(default_factory=list)
    arguments: dict[str, list[str]] = field(default_factory=dict)
    defaults: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)


def compare(root: ModuleType, digest: Digest) -> dict[str, Gaps]:
    """What `root` lacks of a digest, by module."""
    found: dict[str, Gaps] = {}
    for path, entries in digest.items():
        gaps = found[path] = Gaps()
        for name, entry in entries.items():
            full = f"{path}.{name}".lstrip(".")
            if full in LEFT_OUT:
                continue
            gaps.total += 1
            try:
                value = resolve(root, full.replace("()", ""))
            except LookupError:
                if not path.endswith("()") or not is_attribute(root, path[:-2], name):
                    gaps.missing.append(name)
                continue
            if entry["kind"] != "value":
                compare_parameters(gaps, name, entry["parameters"], value)
    return found


def is_attribute(root: ModuleType, path: str, name: str) -> bool:
    """Whether an instance of the class has the attribute, though the class has not."""
    try:
        return name in vars(resolve(root, path)())
    except (LookupError, TypeError):
        return False


def compare_parameters(gaps: Gaps, name: str, wanted: list[list[str]], value: Any) -> None:
    """Note which parameters of `value` are missing or have another default."""
    ours = {p[0]: p[1:] for p in parameters(value)}
    for parameter, *theirs in wanted:
        if parameter in ("self", "cls"):
            continue
        if parameter not in ours:
            gaps.arguments.setdefault(name, []).append(parameter)
        elif theirs != ours[parameter] and "..." not in (*theirs, *ours[parameter]):
            before, after = (d[0] if d else "-" for d in (theirs, ours[parameter]))
            gaps.defaults.setdefault(name, []).append((parameter, before, after))


def load_digest() -> Digest:
    """Keras's surface, as it was when the digest was made."""
    found: Digest = json.loads(DIGEST.read_text())
    return found


def report(gaps: dict[str, Gaps]) -> Iterator[str]:
    """What is missing, as lines of text."""
    for path, g in gaps.items():
        yield f"{path or 'keras'}: {g.total - len(g.missing)} of {g.total}"
        if g.missing:
            yield f"    missing: {', '.join(g.missing)}"
        for name, names in g.arguments.items():
            yield f"    {name}: no {', '.join(names)}"
        for name, differences in g.defaults.items():
            for parameter, theirs, ours in differences:
                yield f"    {name}: {parameter}={ours}, Keras has {theirs}"


def table(gaps: dict[str, Gaps], most: int = 12) -> str:
    """The table of the README: a row for each module, with the modules inside of it."""
    rows: dict[str, Gaps] = {}
    for path, g in sorted(gaps.items()):
        top, _, inner = path.removesuffix("()").partition(".")
        is_class = path.endswith("()")
        row = rows.setdefault("methods of the base classes" if is_class else top, Gaps())
        row.total += g.total
        prefix = f"{top}." * is_class + f"{inner}." * bool(inner)
        row.missing += [prefix + name for name in g.missing]
    lines = ["| module | of Keras's names | not there |", "|---|---|---|"]
    for label, row in rows.items():
        name = f"`keras.{label}`" if label and " " not in label else label or "`keras`"
        names = [f"`{n}`" for n in row.missing[:most]]
        if len(row.missing) > most:
            names.append(f"{len(row.missing) - most} more")
        if len(row.missing) == row.total:
            names = ["all"]
        there = row.total - len(row.missing)
        lines.append(f"| {name} | {there} of {row.total} | {', '.join(names)} |")
    total = sum(row.total for row in rows.values())
    there = total - sum(len(row.missing) for row in rows.values())
    lines.append(f"| all | {there} of {total} | |")
    return "\n".join(lines) + "\n"


def in_readme() -> str:
    """The table that the README has."""
    _, _, rest = README.read_text().partition(BEGIN)
    return rest.partition(END)[0]


def write_readme(text: str) -> None:
    """Put a table into the README, where the old one is."""
    before, begin, rest = README.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    README.write_text(before + begin + text + end + after)


def main(command: str = "report") -> None:
    """What the head of the file says."""
    if command == "digest":
        keras = importlib.import_module("keras")
        DIGEST.write_text(json.dumps(digest_of(keras), separators=(",", ":")) + "\n")
        return
    gaps = compare(importlib.import_module("laminar"), load_digest())
    if command == "readme":
        write_readme(table(gaps))
    else:
        print("\n".join(report(gaps)))


if __name__ == "__main__":
    main(*sys.argv[1:])
