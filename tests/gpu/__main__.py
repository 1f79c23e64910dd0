"""`python -m tests.gpu`: all tests that need a GPU, then the measurements. See README.md."""

from __future__ import annotations

import os
import subprocess
import sys


def main() -> int:
    """Run them; the exit status of the first that fails."""
    environment = {**os.environ, "LAMINAR_REQUIRE_GPU": "1"}
    commands = [
        ["pytest", "-n", "0", "tests/gpu", "tests/engine/cuda"],
        ["pytest", "-n", "0", "tests/engine/ops"],
        ["benchmarks.gpu"],
    ]
    for command in commands:
        status = subprocess.run([sys.executable, "-m", *command], env=environment).returncode
        if status:
            return status
    return 0


sys.exit(main())
