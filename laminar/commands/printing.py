"""What people read, printed: this module owns rich, which is loaded when a table is."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .found import Rows

_WIDE = 10_000  # of what is printed to a file: nothing is broken there


def show(parts: Sequence[str | Rows]) -> None:
    """Print texts and tables; what files name is no markup."""
    for part in parts:
        if isinstance(part, str):
            print(part)
        else:
            _print_table(part)


def _print_table(rows: Rows) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    found = Table(box=SIMPLE_HEAD if rows.head else None, show_header=bool(rows.head))
    width = len(rows.head or (rows.rows[0] if rows.rows else ()))
    for i in range(width):
        title = rows.head[i] if rows.head else ""
        found.add_column(title, justify="left" if i < rows.left else "right", overflow="fold")
    for row in rows.rows:
        found.add_row(*(Text(cell) for cell in row))
    is_terminal = sys.stdout.isatty()
    Console(highlight=False, width=None if is_terminal else _WIDE).print(found, markup=False)
