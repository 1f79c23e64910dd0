"""What holds for every file of the repository: its size, its words, what its code never does."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

FOLDERS = (
    *(".ci", "benchmarks", "datasets", "distribute", "engine"),
    *("docs", "examples", "laminar", "layers", "optimizers", "tests"),
)
TOP_FILES = {
    *(".gitignore", "ARCHITECTURE.md", "CONTRIBUTING.md", "LICENSE", "README.md"),
    "pyproject.toml",
}
LONG, TOO_LONG = 500, 600  # lines of a file
# Where the work was done; put together here so that this file does not hold them.
FOREIGN = ["/" + "work/", "/" + "tmp/bash", "/" + "tmp/lv", "/" + "tmp/kv"]

# What runs code that a file holds, or may do so.
LOADERS = {"cloudpickle", "cPickle", "dill", "joblib", "marshal", "pickle", "shelve", "_pickle"}
EVALUATORS = {"builtins.__import__", "builtins.compile", "builtins.eval", "builtins.exec"}
# Text without such a word has none of them; a letter beyond ASCII may stand for one of these.
SUSPECT = re.compile(
    rb"[^\0-\x7f]|\b(?:"
    + "|".join([*LOADERS, *(e.partition(".")[2] for e in EVALUATORS), "allow_pickle"]).encode()
    + rb")\b"
)
# What may do so nevertheless, with the reason.
NO_DATA = {
    "engine/autograph/conversion.py": "compiles the tree of a function that the user is running",
}
EXPLAINED = re.compile(
    r"#\s*(?:type:\s*ignore\[[\w-]+(?:,\s*[\w-]+)*\]|noqa:\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*)\W+\w+"
)
IGNORES = re.compile(r"#\s*(?:type:\s*ignore|noqa)")


def walk(folder: Path) -> Iterator[Path]:
    """The files in a folder, without caches; links lead to folders that are walked themselves."""
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or path.name.startswith((".", "__pycache__")):
            continue
        if path.is_dir():
            yield from walk(path)
        else:
            yield path


FILES = [p for p in sorted(ROOT.iterdir()) if p.is_file() and p.name not in (".git", ".coverage")]
FILES += [p for folder in FOLDERS for p in walk(ROOT / folder)]
CODE = [p for p in FILES if p.suffix == ".py"]
OWN_CODE = [p for p in CODE if p.relative_to(ROOT).parts[0] != "tests"]


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tracked() -> list[str]:
    """The names of all files that belong to the repository."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout: what belongs to the repository is not known")
    listed = ["git", "ls-files", "-z"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return names.rstrip("\0").split("\0")


def test_the_files_are_found() -> None:
    names = set(map(shown, FILES))
    assert {
        "README.md",
        ".ci/run",
        "engine/ops/core/registry.py",
        "tests/test_repository.py",
    } <= names
    assert not any(name.startswith("laminar/layers/") for name in names), "each file once"
    here = {name for name in tracked() if (ROOT / name).is_file()}
    assert here <= names, "add the new folders to FOLDERS"


def test_nothing_lies_about_at_the_top() -> None:
    top = {name.split("/")[0] for name in tracked()}
    assert top == TOP_FILES | set(FOLDERS), "what a run left behind does not belong here"


def test_no_paths_of_the_place_where_it_was_made() -> None:
    found = [
        f"{shown(path)}:{line} has {word}"
        for path in FILES
        for line, text in enumerate(path.read_bytes().split(b"\n"), 1)
        for word in FOREIGN
        if word.encode() in text
    ]
    assert not found, "\n".join(found)


def test_no_file_is_too_long() -> None:
    lengths = {shown(p): len(p.read_text().splitlines()) for p in CODE}
    long = "\n".join(f"{n} lines: {name}" for name, n in lengths.items() if n > LONG)
    print(long)  # those to be divided next; -rP shows them
    longest = max(lengths.values())
    assert longest <= TOO_LONG, f"a file is one idea, divide it:\n{long}"


def dangers(source: bytes) -> Iterator[tuple[int, str]]:
    """What may run code that came with data: by line, the name of it."""
    for node in ast.walk(ast.parse(source)) if SUSPECT.search(source) else ():
        match node:
            case ast.Import():
                modules = [alias.name for alias in node.names]
            case ast.ImportFrom(module=str(module), level=0):
                modules = [module, *(f"{module}.{alias.name}" for alias in node.names)]
            case ast.Attribute(value=ast.Name(id="builtins")):
                modules = [f"builtins.{node.attr}"]
            case ast.Name(id="eval" | "exec" | "__import__" as name):
                modules = [f"builtins.{name}"]
            case ast.Call(func=ast.Name(id="compile")):
                modules = ["builtins.compile"]
            case ast.keyword(arg="allow_pickle", value=value) if ast.unparse(value) != "False":
                modules = ["pickle"]
            case _:
                continue
        yield from ((node.lineno, m) for m in modules if m in EVALUATORS or package(m) in LOADERS)


def package(module: str) -> str:
    return module.split(".")[0]


def test_nothing_that_is_loaded_can_run() -> None:
    found = [
        f"{shown(path)}:{line}: {what}"
        for path in OWN_CODE
        for line, what in dangers(path.read_bytes())
        if shown(path) not in NO_DATA or what != "builtins.compile"
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from pickle import loads",
        "import marshal as m",
        "eval('1')",
        "run = exec",
        "compile(text, 'f', 'exec')",
        "from builtins import eval as e",
        "builtins.exec('1')",
        "np.load(f, allow_pickle=True)",
        "np.load(f, allow_pickle=flag)",
        "\uff45val('1')",  # Python reads this e as the one of ASCII
    ],
)
def test_dangers_are_seen(line: str) -> None:
    assert list(dangers(line.encode()))


@pytest.mark.parametrize(
    "line",
    [
        "tensor.eval()",
        "model.compile()",
        "def load(compile=True): return compile",
        "np.load(f, allow_pickle=False)",
        "from .pickle import x",
    ],
)
def test_harmless_lines_pass(line: str) -> None:
    assert not list(dangers(line.encode()))


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """Those of a file that has some of `IGNORES`, by line."""
    with tokenize.open(path) as file:
        text = file.read()
    if not IGNORES.search(text):
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def test_what_checkers_are_told_to_ignore_has_a_reason() -> None:
    bare = [
        f"{shown(path)}:{line}: {comment}"
        for path in CODE
        for line, comment in comments(path)
        if IGNORES.search(comment) and not EXPLAINED.search(comment)
    ]
    assert not bare, "give the code and the reason after it:\n" + "\n".join(bare)
