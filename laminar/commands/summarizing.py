"""laminar summary: what a file holds, a model, export, weights, checkpoint, graph or events."""

from __future__ import annotations

import argparse
import math
import os
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from laminar.callbacks.display import format_bytes
from laminar.engine import checkpoint, latest_checkpoint
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import as_dtype
from laminar.engine.graph.text import spec_text
from laminar.engine.saving.meta_graph import read_meta_graph
from laminar.engine.saving.tensorflow import TensorFlowGraph
from laminar.engine.summary import read_events
from laminar.tree import flatten

from .found import Found, Rows
from .opening import EXPORTS, MODELS, WEIGHTS, check_file, open_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("file", help="the file, the prefix of a checkpoint, or a folder of them")


def run(options: argparse.Namespace) -> Found:
    """Find out of what kind a file is, and tell what it holds."""
    path = options.file
    if os.path.isdir(path):
        newest = latest_checkpoint(path)
        if newest is not None:
            return _checkpoint(newest)
        events = sorted(name for name in os.listdir(path) if ".tfevents." in name)
        if not events:
            raise InvalidArgumentError(f"the folder {path!r} has no checkpoints, and no events")
        path = os.path.join(path, events[-1])
    if checkpoint.checkpoint_exists(path.removesuffix(".index")):
        return _checkpoint(path.removesuffix(".index"))
    check_file(path)
    if path.endswith(WEIGHTS):
        return _weights(path)
    if path.endswith(".meta"):
        return _meta_graph(path)
    if ".tfevents." in os.path.basename(path):
        return _events(path)
    if path.endswith(EXPORTS):
        return _export(path)
    if path.endswith(MODELS):
        return _model(path)
    raise InvalidArgumentError(
        f"{path!r} is of no kind that is known by its name",
        remedy="models are .keras, exports .laminar, weights .weights.h5 or .safetensors, graphs "
        ".meta; checkpoints are given by their prefix",
    )


def _model(path: str) -> Found:
    model = open_model(path)
    lines: list[str] = []
    if model.built:
        model.summary(print_fn=lines.append)
    layers = [
        {"name": layer.name, "class": type(layer).__name__, "parameters": layer.count_params()}
        for layer in model.layers
        if layer.built
    ]
    total = sum(math.prod(w.shape) for w in model.weights)
    data = {"kind": "model", "name": model.name, "parameters": total, "layers": layers}
    return Found(data, lines or [f"{model.name}: {type(model).__name__}, {total:,} parameters"])


def _export(path: str) -> Found:
    found = open_model(path)
    endpoints = {
        name: [spec_text(spec) for spec in flatten(endpoint.input_signature)]
        for name, endpoint in found.endpoints.items()
    }
    arrays = _arrays((v.path, tuple(v.shape), v.dtype) for v in found.variables)
    data = {"kind": "export", "endpoints": endpoints, **arrays.data}
    rows = [(name, ", ".join(specs)) for name, specs in endpoints.items()]
    return Found(data, [Rows(rows, ("endpoint", "takes"), 2), *arrays.shown])


def _weights(path: str) -> Found:
    from laminar.saving.flat import read_safetensors  # what the command does not need is not loaded
    from laminar.saving.limits import Limits
    from laminar.saving.weights import WeightsReader

    if path.endswith(".safetensors"):
        with read_safetensors(path, Limits()) as store:
            return _kind(
                "weights", _arrays((n, store.spec(n).shape, store.spec(n).dtype) for n in store)
            )
    with WeightsReader(path) as reader:
        return _kind(
            "weights", _arrays((n, reader.spec(n).shape, reader.spec(n).dtype) for n in reader)
        )


def _checkpoint(prefix: str) -> Found:
    with checkpoint.CheckpointReader(prefix) as reader:
        found = _arrays(
            (n, shape, dtype or "?") for n, (shape, dtype) in reader.variables().items()
        )
    return _kind("checkpoint", found, prefix=prefix)


def _kind(kind: str, found: Found, **more: Any) -> Found:
    return Found({"kind": kind, **more, **found.data}, found.shown)


def _arrays(arrays: Iterable[tuple[str, Any, Any]]) -> Found:
    """A table of names, shapes and types."""
    listed = []
    for name, shape, dtype in arrays:
        size = math.prod(d or 0 for d in shape)
        text = str(np.dtype(dtype) if isinstance(dtype, np.dtype) else dtype)
        each = 0 if text in ("object", "string", "?") else as_dtype(text).size
        listed.append({"name": name, "shape": list(shape), "dtype": text, "bytes": size * each})
    total = sum(row["bytes"] for row in listed)
    count = sum(math.prod(d or 0 for d in row["shape"]) for row in listed)
    rows = [(r["name"], str(r["shape"]), r["dtype"], format_bytes(r["bytes"])) for r in listed]
    data = {"arrays": listed, "elements": count, "bytes": total}
    text = f"{len(listed)} arrays, {count:,} elements, {format_bytes(total)}"
    return Found(data, [Rows(rows, ("name", "shape", "type", "size")), text])


def _meta_graph(path: str) -> Found:
    found = read_meta_graph(path)
    foreign = isinstance(found.graph_def, TensorFlowGraph)
    ops = Counter(node.op for node in found.graph_def.message.node)
    data = {
        "kind": "graph",
        "written_by": f"TensorFlow {found.graph_def.version}" if foreign else "laminar",  # type: ignore[union-attr]  # looked at above
        "operations": sum(ops.values()),
        "ops": dict(ops.most_common()),
        "collections": sorted(found.collections),
        "signatures": sorted(found.signatures),
        "saver": None if found.saver_def is None else found.saver_def.save_tensor_name,
    }
    rows = [(op, str(count)) for op, count in ops.most_common()]
    text = (
        f"{data['operations']} operations, written by {data['written_by']}; collections: "
        f"{', '.join(sorted(found.collections)) or 'none'}"
    )
    return Found(data, [Rows(rows, ("op", "operations")), text])


def _events(path: str) -> Found:
    tags: dict[str, list[tuple[int, Any]]] = {}
    for event in read_events(path):
        for value in event.summary.value if event.summary is not None else ():
            tags.setdefault(value.tag, []).append((event.step, value.simple_value))
    data = {
        "kind": "events",
        "tags": {
            tag: {"records": len(found), "last_step": found[-1][0], "last_value": found[-1][1]}
            for tag, found in tags.items()
        },
    }
    rows = [
        (
            tag,
            str(len(found)),
            str(found[-1][0]),
            "" if found[-1][1] is None else f"{found[-1][1]:.6g}",
        )
        for tag, found in tags.items()
    ]
    return Found(data, [Rows(rows, ("tag", "records", "last step", "last value"))])
