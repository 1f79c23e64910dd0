"""Parts of images that hold a part of a box."""

from __future__ import annotations

import numpy as np

from laminar.engine.graph import EagerTensor
from laminar.engine.ops.random.boxes import sample_distorted_box
from laminar.engine.ops.random.random_state import initial_state

HEIGHT, WIDTH = 60, 40


def test_parts_are_of_the_ranges_and_hold_the_box() -> None:
    box = np.array([[0.25, 0.25, 0.75, 0.75]], np.float32)
    seen = set()
    for seed in range(20):
        found = sample_distorted_box(
            EagerTensor(initial_state(seed)),
            EagerTensor(np.array([HEIGHT, WIDTH, 3], np.int32)),
            EagerTensor(box),
            min_object_covered=0.25,
            aspect_ratio_range=(0.5, 2.0),
            area_range=(0.2, 0.8),
            max_attempts=100,
        ).numpy()
        top, left, height, width = map(int, found)
        seen.add((top, left, height, width))
        assert min(top, left) >= 0
        assert top + height <= HEIGHT
        assert left + width <= WIDTH
        assert 0.15 < height * width / (HEIGHT * WIDTH) < 0.85  # sizes are rounded
        assert 0.45 < width / height < 2.2
        rows = min(top + height, 45) - max(top, 15)
        columns = min(left + width, 30) - max(left, 10)
        assert max(rows, 0) * max(columns, 0) >= 0.2 * 30 * 20
    assert len(seen) > 10
