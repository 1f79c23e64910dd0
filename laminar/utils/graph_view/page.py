"""The page: data, script and style in one file."""

from __future__ import annotations

import base64
import gzip
import html
import json
from importlib import resources
from typing import Any

from .contents import GraphContents

_SCRIPTS = ("model.js", "layout.js", "drawing.js", "panel.js", "main.js")
# Nothing is loaded from anywhere.
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"


def page_bytes(contents: GraphContents, title: str) -> bytes:
    """The page of a graph. What the user named stands in its data alone, which are no HTML."""
    return filled("viewer.html", title, contents.tables(), _SCRIPTS)


def filled(template: str, title: str, tables: Any, scripts: tuple[str, ...]) -> bytes:
    """A template with its title, data and scripts; the data are JSON, compressed, as base 64."""
    text = json.dumps(tables, separators=(",", ":"), allow_nan=False).encode()
    data = base64.b64encode(gzip.compress(text, 6, mtime=0)).decode()
    parts = {
        "POLICY": _POLICY,
        "TITLE": html.escape(title),
        "STYLE": _resource("viewer.css"),
        "DATA": data,
        "SCRIPT": "\n".join(_resource(name) for name in scripts),
    }
    page = _resource(template)
    pieces = page.split("@@")  # text, name, text, name, ... text
    return "".join(parts[p] if i % 2 else p for i, p in enumerate(pieces)).encode()


def tables_of(page: bytes) -> Any:
    """The data of a page."""
    _, _, rest = page.partition(b'<script id="data" type="text/plain">')
    data, _, _ = rest.partition(b"</script>")
    return json.loads(gzip.decompress(base64.b64decode(data)))


def _resource(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")
