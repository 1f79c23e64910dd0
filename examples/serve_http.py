"""An exported model that answers over HTTP, without the code that made it.

    python examples/serve_http.py [--port 8500] [--once]

A model is trained and exported; the server loads the file, which needs neither layers nor
optimizers, and answers `POST /predict` with JSON: {"instances": [...]} -> {"predictions": [...]}.
It listens on this machine only. `--once` asks it a question, prints the answer and ends.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

import laminar
from laminar import layers

LARGEST = 1 << 20  # bytes of a question


def train(path: Path) -> None:
    """A small network for digits, exported for batches of any size."""
    (x, y), _ = laminar.datasets.digits.load_data()
    model = laminar.Sequential(
        [layers.Input((8, 8)), layers.Rescaling(1 / 16), layers.Flatten(), layers.Dense(10)]
    )
    model.compile(
        laminar.optimizers.Adam(0.01),
        laminar.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.fit(x.astype("float32"), y, epochs=10, verbose=0)
    model.export(path)


def server(path: Path, port: int) -> ThreadingHTTPServer:
    """A server for the model in a file; port 0 takes a free one."""
    exported = laminar.export.load(path)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            try:
                if self.path != "/predict":
                    raise LookupError(f"no such path: {self.path}")
                size = int(self.headers.get("Content-Length", 0))
                if size > LARGEST:
                    raise ValueError(f"a question has {LARGEST} bytes at most")
                x = np.asarray(json.loads(self.rfile.read(size))["instances"], "float32")
                status, answer = 200, {"predictions": np.asarray(exported.serve(x)).tolist()}
            except LookupError as error:
                status, answer = 404, {"error": str(error)}
            except (ValueError, TypeError) as error:  # laminar's errors are these, too
                status, answer = 400, {"error": str(error)}
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """A line for each question is too much here."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def ask(port: int, instances: Any) -> Any:
    question = urllib.request.Request(
        f"http://127.0.0.1:{port}/predict", json.dumps({"instances": instances}).encode()
    )
    with urllib.request.urlopen(question, timeout=30) as answer:
        return json.load(answer)["predictions"]


def main(arguments: list[str] | None = None) -> float:
    """Gives the share of test digits that are answered right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8500)
    parser.add_argument("--once", action="store_true")
    options = parser.parse_args(arguments)
    laminar.set_random_seed(0)
    _, (x, y) = laminar.datasets.digits.load_data()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.laminar"
        train(path)
        running = server(path, 0 if options.once else options.port)
        port = int(running.server_address[1])
        print(f"http://127.0.0.1:{port}/predict answers")
        if not options.once:
            running.serve_forever()
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            scores = np.array(ask(port, x.tolist()))
        finally:
            running.shutdown()
            thread.join()
            running.server_close()
    right = float(np.mean(scores.argmax(axis=1) == y))
    print(f"{right:.1%} of {len(y)} digits right")
    return right


if __name__ == "__main__":
    main()
