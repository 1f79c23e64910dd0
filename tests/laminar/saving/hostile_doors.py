"""A program that feeds hostile model files to every door.

In a process of its own, it loads each of them in every way, under an audit hook that notices what
Python is made to do, and prints what went wrong as JSON: nothing, if all is well.

    python -m tests.laminar.saving.hostile_doors corpus FOLDER
    python -m tests.laminar.saving.hostile_doors fuzz FOLDER COUNT
"""

from __future__ import annotations

import importlib
import io
import json
import os
import random
import resource
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import laminar
from laminar.engine.errors import LaminarError
from laminar.models import model_from_json
from laminar.saving import load_model

from .hostile import SECRET, entries_of, write_corpus

MAX_SECONDS = 5.0
MAX_BYTES = 64 << 20


def doors(path: Path, model: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every way in which a file can be loaded."""
    if path.name.startswith("config"):  # whose weights are good
        yield "model", lambda: load_model(path, safe_mode=False)
        yield "model, partial", lambda: load_model(path, partial=True)
        if path.suffix == ".keras":
            text = entries_of(path)["config.json"].decode("utf-8", "surrogatepass")
            yield "json", lambda: model_from_json(text)
        return
    yield "weights", lambda: model.load_weights(path)
    yield "weights, partial", lambda: model.load_weights(path, partial=True)
    if path.name.endswith(".weights.h5"):
        return
    yield "model", lambda: load_model(path, safe_mode=False)
    yield "model, partial", lambda: load_model(path, compile=False, partial=True)
    if path.name.startswith("text"):
        text = entries_of(path)["config.json"].decode("utf-8", "surrogatepass")
        yield "json", lambda: model_from_json(text)


class Watch:
    """An audit hook: notes what no loading may do."""

    # What a loading may not lead to; imports compile and unmarshal, so they come first of all.
    FORBIDDEN = (
        *("exec", "compile", "import", "marshal.loads", "pickle.find_class", "os.system"),
        *("subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec", "socket.connect"),
        *("ctypes.dlopen", "os.remove", "shutil.rmtree", "tempfile.mkstemp", "urllib.Request"),
    )

    def __init__(self, folder: Path) -> None:
        for name in dir(laminar.ops):  # what laminar loads by need is no doing of a file
            getattr(laminar.ops, name)
        importlib.import_module("laminar.applications")  # has layers of its own
        self.folder = os.fspath(folder)
        self.secret = os.path.join(self.folder, SECRET)
        self.seen: list[str] = []
        self.is_on = False
        sys.addaudithook(self._note)

    def _note(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.is_on:
            return
        if event in self.FORBIDDEN:
            self.seen.append(f"{event} {args!r:.200}")
        elif event == "open" and isinstance(args[0], str):
            inside = os.path.abspath(args[0]).startswith(self.folder)
            if args[0] == self.secret or not (inside or args[0].endswith(".py")):
                self.seen.append(f"open {args[0]}")


def attempt(
    path: Path, door: str, load: Callable[[], Any], watch: Watch, *, measures: bool = True
) -> str | None:
    """Load once; what was wrong about it, None if nothing."""
    if measures:
        tracemalloc.start()
    start = time.thread_time()
    watch.seen.clear()
    problem = None
    try:
        with redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            watch.is_on = True
            load()
    except LaminarError as error:
        watch.is_on = False
        named = "model_from_json" if door == "json" else os.fspath(path)
        if "MemoryError" in error.message:
            problem = f"it asked for too much memory: {error.message:.300}"
        elif named not in error.message:
            problem = f"the error does not name the file: {error.message:.300}"
    except BaseException as error:
        watch.is_on = False
        problem = f"{type(error).__name__}: {error}"[:300]
    finally:
        watch.is_on = False
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    seconds = time.thread_time() - start
    if watch.seen:
        problem = f"it did {watch.seen[0]}"
    elif peak > MAX_BYTES:
        problem = f"it took {peak} bytes"
    elif seconds > MAX_SECONDS:
        problem = f"it took {seconds:.1f} seconds"
    return None if problem is None else f"{path.name}, {door}: {problem}"


def run_corpus(folder: Path) -> list[str]:
    """Load every hostile file through every door."""
    files = write_corpus(folder)
    model = _warmed_up(folder)
    before = [v.numpy() for v in model.variables]
    watch = Watch(folder)
    problems = []
    for path in files:
        measures = any(word in path.name for word in ("huge", "bomb", "array", "many", "deep"))
        for door, load in doors(path, model):
            problems.append(attempt(path, door, load, watch, measures=measures))
        if "partial" not in path.name and not path.name.startswith(("config", "zip", "text")):
            _restore(model, before)
    if (folder / "ran").exists() or Path("ran").exists():
        problems.append("a payload has run")
    return [problem for problem in problems if problem is not None]


def fuzz(folder: Path, count: int) -> list[str]:
    """Flip bits of good files, and load them."""
    write_corpus(folder)
    model = _warmed_up(folder)
    watch = Watch(folder)
    chance = random.Random(0)
    kinds = {suffix: (folder / f"good{suffix}").read_bytes() for suffix in (".keras", ".h5")}
    kinds[".weights.h5"] = (folder / "good.weights.h5").read_bytes()
    problems = []
    for i in range(count):
        suffix = (".weights.h5", ".h5", ".weights.h5", ".keras")[i % 4]
        data = bytearray(kinds[suffix])
        for _ in range(chance.choice((1, 1, 1, 2, 8))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path = folder / f"flipped{suffix}"
        path.write_bytes(data)
        whole = suffix != ".weights.h5" and i % 16 in (1, 3)
        load = (lambda: load_model(path)) if whole else (lambda: model.load_weights(path))  # noqa: B023  # called at once
        problem = attempt(path, f"flip {i}", load, watch, measures=False)
        if problem is not None:
            problems.append(problem)
    return problems


def _warmed_up(folder: Path) -> Any:
    """A model, after good loads through all doors: what they import is there."""
    model = load_model(folder / "good.keras")
    for suffix in (".keras", ".h5", ".weights.h5"):
        for _, load in doors(folder / f"good{suffix}", model):
            with redirect_stdout(io.StringIO()):
                load()
    bad: list[Callable[[], Any]] = [
        lambda: model_from_json("["),
        lambda: load_model(folder / "none.keras"),
    ]
    for load in bad:
        try:
            load()
        except LaminarError as error:
            str(error)
    return model


def _restore(model: Any, values: list[Any]) -> None:
    for v, value in zip(model.variables, values, strict=True):
        v.assign(value)


if __name__ == "__main__":
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + (1 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    target = Path(sys.argv[2]).resolve()
    found = run_corpus(target) if sys.argv[1] == "corpus" else fuzz(target, int(sys.argv[3]))
    print(json.dumps(found, indent=1))
