"""How many examples hypothesis tries."""

from __future__ import annotations

from hypothesis import settings


def examples(count: int) -> settings:
    """So many in a run of all tests; in the quick run, whose profile says less, a part of them."""
    return settings(max_examples=max(1, count * settings().max_examples // 100))
