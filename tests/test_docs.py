"""The documentation: its code runs, its links lead somewhere, the site is built."""

from __future__ import annotations

import importlib.util
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import laminar
from benchmarks.page import pages
from tests.browser import browser

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
CODE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MADE = ("extending.md", "architecture.md", "examples.md", "how_fast.md", "api/")


def hooks() -> Any:
    spec = importlib.util.spec_from_file_location("docs_hooks", DOCS / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_pages_with_code() -> None:
    assert sum(bool(CODE.search(page.read_text())) for page in PAGES) > 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_code_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All blocks of a page as one program, in a folder of its own."""
    blocks = CODE.findall(page.read_text())
    if not blocks:
        pytest.skip("no code on this page")
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks))
    monkeypatch.chdir(tmp_path)
    laminar.set_random_seed(0)
    runpy.run_path(str(program), run_name="page")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_lead_to_pages(page: Path) -> None:
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
        target = (page.parent / link).resolve()
        made = target.is_relative_to(DOCS) and str(target.relative_to(DOCS)).startswith(MADE)
        assert made or target.is_file(), f"{page.name} links to {link}"


def anchors(page: str) -> set[str]:
    """The anchors of a page's headings, as MkDocs makes them."""
    titles = re.findall(r"^#+ (.+)$", CODE.sub("", page), re.MULTILINE)
    words = [re.sub(r"[^\w\s-]", "", title).strip().lower() for title in titles]
    return {re.sub(r"[-\s]+", "-", text) for text in words}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_lead_to_headings(page: Path) -> None:
    for link, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text()):
        target = (page.parent / link).resolve() if link else page
        assert anchor in anchors(target.read_text()), f"{page.name} links to {link}#{anchor}"


@pytest.mark.parametrize(
    "file", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "examples/README.md"]
)
def test_links_of_the_repository_lead_to_files(file: str) -> None:
    page = ROOT / file
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", CODE.sub("", page.read_text())):
        assert (page.parent / link).exists(), f"{file} links to {link}"


def test_the_plots_of_the_page_about_speed_are_pictures() -> None:
    made = hooks().speed()
    page = made.pop("how_fast.md")
    assert made
    for name, plot in made.items():
        assert f"]({name})" in page
        bars = ElementTree.fromstring(plot).findall("{http://www.w3.org/2000/svg}rect")
        assert len(bars) >= 5


def test_a_page_about_speed_has_what_was_measured() -> None:
    seconds = [{"middle": s, "low": s, "high": s} for s in (0.002, 0.004)]
    entry = {"error": None, "blocks": [1.0]}
    result: dict[str, Any] = {
        "workload": "a<b",
        "title": "a step",
        "unit": "s",
        "threads": 2,
        "ratio": {"middle": 0.5},
        "entries": [
            {"framework": "laminar", "seconds": seconds[0], **entry},
            {"framework": "torch", "seconds": seconds[1], **entry},
        ],
    }
    failed = {**result, "title": "fails", "ratio": None, "entries": result["entries"][:1]}
    made = pages(
        {
            "machine": {"processor": "P", "cores": "2 of 2", "system": "S"},
            "frameworks": {"torch": {"torch": "2.0"}},
            "notes": ["a note"],
            "results": [result, failed],
        }
    )
    assert "| a step | 2 ms | 4 ms | 0.50 |" in made["how_fast.md"]
    assert "| fails | 2 ms |  |  |" in made["how_fast.md"]
    assert "- a note" in made["how_fast.md"]
    (bar,) = ElementTree.fromstring(made["how_fast_2.svg"]).iter("{http://www.w3.org/2000/svg}rect")
    line = ElementTree.fromstring(made["how_fast_2.svg"]).find("{http://www.w3.org/2000/svg}line")
    assert line is not None
    one = float(line.attrib["x1"]) - float(bar.attrib["x"])  # the width of a ratio of 1
    assert float(bar.attrib["width"]) == pytest.approx(one / 2, abs=0.1)


def test_files_of_the_repository_become_pages() -> None:
    page = hooks().page_of("CONTRIBUTING.md")
    assert "[ARCHITECTURE.md](architecture.md)" in page
    assert "### An op" in page


def test_the_reference_has_every_public_layer_and_loss_once() -> None:
    pages = hooks().reference()
    for package, name in (
        ("laminar.layers", "dense.Dense"),
        ("laminar.losses", "hinge.Hinge"),
        ("laminar.callbacks", "dashboard.Dashboard"),
        ("laminar.distribute", "servers.Server"),
        ("laminar.engine", "runtime.session.Session"),
    ):
        found = [path for path, text in pages.items() if f"::: {package}.{name}\n" in text]
        assert found == [f"api/{package}.md"]
    entries = re.findall(r"^::: (\S+)$", "\n".join(pages.values()), re.MULTILINE)
    assert len(entries) == len(set(entries)) > 900


@pytest.mark.exhaustive
def test_the_site_is_built(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    command = [sys.executable, "-m", "mkdocs", "build", "-q", "-f", "docs/mkdocs.yml"]
    subprocess.run([*command, "-d", str(tmp_path)], check=True, cwd=ROOT, timeout=500)
    page = (tmp_path / "api" / "laminar.layers.html").read_text()
    assert "Dense" in page
    assert "kernel_initializer" in page
    with browser(tmp_path / "profile") as chromium:
        for width in (1400, 390):
            chromium.resize(width, 900)
            for path in ("index", "first_hour", "guide/errors", "api/laminar.layers"):
                chromium.go(tmp_path / f"{path}.html")
                chromium.wait("document.querySelector('article h1')")
                assert chromium.run("return document.documentElement.scrollWidth") <= width, path
                assert chromium.colours(tmp_path / "seen.png") > 20, path
        results = "document.querySelectorAll('.md-search-result__item')"
        chromium.run("""
            document.querySelector('[data-md-toggle=search]').click();
            const query = document.querySelector('[data-md-component=search-query]');
            query.value = 'EarlyStopping';
            query.dispatchEvent(new Event('keyup'));
        """)
        chromium.wait(f"{results}.length > 0")
        assert "EarlyStopping" in chromium.run(f"return {results}[0].innerText")
        assert not chromium.errors()


def test_each_part_of_the_compiler_has_its_word() -> None:
    """A reader who knows another compiler finds what each module of this one is."""
    page = (DOCS / "guide" / "compiler.md").read_text()
    listed = [name for line in page.splitlines() if line.startswith("|") for name in named(line)]
    rooms = ("ir", "lower", "schedule", "plan", "native", "target", "codegen")
    folders = [ROOT / "engine" / "passes", *(ROOT / "engine" / "compiler" / r for r in rooms)]
    modules = {
        f"{folder.name}/{file.stem}": file.stem
        for folder in folders
        for file in folder.glob("*.py")
        if file.stem != "__init__"
    }
    missing = [m for m, stem in modules.items() if m not in listed and stem not in listed]
    assert not missing
    known = {*modules, *modules.values(), "lower/rules", "math/", "cuda/"}
    known |= {f.name for f in (ROOT / "engine" / "compiler" / "kernels").iterdir() if f.is_dir()}
    assert not [name for name in listed if name not in known]


def named(line: str) -> list[str]:
    """What the first cell of a row of a table names."""
    return re.findall(r"`([^`]+)`", line.split("|")[1])
