"""Event files read by TensorBoard's own reader, value by value."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
import time
import urllib.request
import warnings
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import laminar
from laminar import engine, layers, ops
from laminar.engine import errors, summary

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of TensorBoard's own imports
    accumulators: Any = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="TensorBoard is not installed",
    )
    from google.protobuf import text_format
    from tensorboard.compat.proto import config_pb2, graph_pb2
    from tensorboard.util import tensor_util

rng = np.random.default_rng(0)


def read(folder: Path) -> Any:
    """What TensorBoard finds; nothing is left out of it."""
    sizes = dict.fromkeys(accumulators.DEFAULT_SIZE_GUIDANCE, 0)
    found = accumulators.EventAccumulator(str(folder), size_guidance=sizes)
    found.Reload()
    return found


def test_scalars_and_histograms(tmp_path: Path) -> None:
    numbers = rng.normal(size=(3, 1000))
    with engine.Graph().as_default() as graph:
        x = engine.placeholder("float32", [1000], name="x")
        summary.scalar("loss", ops.mean(x))
        summary.histogram("weights", x)
        merged = summary.merge_all()
        with engine.Session() as session, summary.FileWriter(tmp_path, graph) as writer:
            for step, row in zip((0, 10, 2**40), numbers, strict=True):
                writer.add_summary(session.run(merged, {x: row.astype("float32")}), step)
    found = read(tmp_path)
    scalars = found.Scalars("loss")
    assert [event.step for event in scalars] == [0, 10, 2**40]
    np.testing.assert_allclose([e.value for e in scalars], numbers.mean(axis=1), rtol=1e-5)
    assert scalars[0].wall_time <= scalars[1].wall_time <= scalars[2].wall_time
    for event, row in zip(found.Histograms("weights"), numbers.astype("float32"), strict=True):
        value = event.histogram_value
        assert (value.min, value.max, value.num) == (row.min(), row.max(), 1000)
        np.testing.assert_allclose(value.sum, row.sum(dtype="float64"), rtol=1e-6)
        np.testing.assert_allclose(value.sum_squares, np.square(row, dtype="float64").sum())
        inner = np.searchsorted(value.bucket_limit[:-1], row, side="right")  # the last is closed
        counts = np.bincount(inner, minlength=len(value.bucket_limit))
        np.testing.assert_array_equal(value.bucket, counts)


def test_images_sounds_and_texts(tmp_path: Path) -> None:
    pixels = rng.integers(0, 256, (2, 5, 4, 3)).astype("uint8")
    tone = np.sin(np.arange(400) / 5).astype("float32")[None]
    with summary.create_file_writer(tmp_path) as writer, writer.as_default(step=7):
        summary.image("picture", pixels, max_outputs=2)
        summary.audio("tone", tone, 8000, max_outputs=1)
        summary.text("note", ["first **row**", "äöü"])
    found = read(tmp_path)
    for i in range(2):
        (event,) = found.Images(f"picture/{i}")
        assert (event.step, event.width, event.height) == (7, 4, 5)
        with Image.open(io.BytesIO(event.encoded_image_string)) as image:
            np.testing.assert_array_equal(np.asarray(image), pixels[i])
    (sound,) = found.Audio("tone")
    assert (sound.step, sound.sample_rate, sound.content_type) == (7, 8000, "audio/wav")
    with wave.open(io.BytesIO(sound.encoded_audio_string)) as file:
        levels = np.frombuffer(file.readframes(400), "<i2")
    np.testing.assert_allclose(levels / 32767, tone[0], atol=1 / 32767)
    (text,) = found.Tensors("note")
    rows = tensor_util.make_ndarray(text.tensor_proto)
    assert [row.decode() for row in rows.reshape(-1)] == ["first **row**", "äöü"]
    plugin = found.SummaryMetadata("note").plugin_data.plugin_name
    assert plugin == "text"


def test_graphs_and_what_runs_tell(tmp_path: Path) -> None:
    with engine.Graph().as_default() as graph, engine.Session() as session:
        x = engine.placeholder("float32", [None, 3], name="in/x")
        first, second = ops.split(x, [1], axis=1)
        with graph.control_dependencies([first]), engine.device("/device:cpu:0"):
            y = engine.identity(ops.exp(second), name="out/y")
        metadata = engine.RunMetadata()
        session.run(y, {x: np.ones((2, 3))}, engine.RunOptions(trace=True), metadata)
        with summary.FileWriter(tmp_path, graph) as writer:
            writer.add_run_metadata(metadata, "step 3", 3)
    found = read(tmp_path)
    nodes = {node.name: node for node in found.Graph().node}
    assert list(nodes) == [op.name for op in graph.operations]
    for op in graph.operations:
        node = nodes[op.name]
        assert (node.op, node.device) == (op.type, op.device)
        names = [f"{t.op.name}:{t.value_index}" if t.value_index else t.op.name for t in op.inputs]
        assert list(node.input) == [*names, *(f"^{c.name}" for c in op.control_inputs)]
        shapes = [[d.size for d in shape.dim] for shape in node.attr["_output_shapes"].list.shape]
        assert shapes == [[-1 if d is None else d for d in t.shape] for t in op.outputs]
    run = found.RunMetadata("step 3")
    (device,) = run.step_stats.dev_stats
    (stats,) = metadata.step_stats
    assert device.device == stats.device
    assert [n.node_name for n in device.node_stats] == [n.name for n in stats.nodes]
    for node, own in zip(device.node_stats, stats.nodes, strict=True):
        assert abs(node.all_start_micros - own.start_us) <= 1
        assert abs(node.all_end_rel_micros - own.duration_us) <= 1
        sizes = [o.tensor_description.allocation_description.requested_bytes for o in node.output]
        assert sum(sizes) == own.output_bytes


@pytest.mark.parametrize("tensorflow", [False, True])
def test_graphs_of_meta_graphs(tensorflow: bool, tmp_path: Path) -> None:
    with engine.Graph().as_default() as graph:
        x = engine.placeholder("float32", [None, 3], name="in/x")
        w = engine.get_variable("w", [3, 2])
        engine.add_to_collection("ends", engine.identity(ops.matmul(x, w), name="y"))
        saver = engine.Saver()
        meta = saver.export_meta_graph(tmp_path / "m.meta", tensorflow=tensorflow)
    with summary.FileWriter(tmp_path) as writer:
        writer.add_meta_graph(meta, 4)
        with pytest.raises(errors.InvalidArgumentError, match="expected a MetaGraph, got 3"):
            writer.add_meta_graph(3)
    found = read(tmp_path)
    message = found.MetaGraph()
    nodes = {node.name: node for node in found.Graph().node}
    names = [op.name for op in graph.operations]
    assert set(names) <= nodes.keys()
    assert [*nodes["y"].input] == ["MatMul"]
    assert [*message.collection_def["ends"].node_list.value] == ["y:0"]
    assert message.saver_def.restore_op_name == "save/restore_all"


def test_what_fit_writes(tmp_path: Path) -> None:
    x = rng.normal(size=(32, 3)).astype("float32")
    model = laminar.Sequential([layers.Input((3,)), layers.Dense(2, name="head")])
    model.compile("sgd", "mse")
    callback = laminar.callbacks.TensorBoard(tmp_path, histogram_freq=1)
    history = model.fit(
        x, x[:, :2], validation_data=(x, x[:, :2]), epochs=3, verbose=0, callbacks=[callback]
    )
    found = read(tmp_path / "train")
    losses = found.Scalars("epoch_loss")
    np.testing.assert_allclose([e.value for e in losses], history.history["loss"], rtol=1e-6)
    assert [e.step for e in losses] == [0, 1, 2]
    (tag,) = [tag for tag in found.Tags()["histograms"] if "kernel" in tag]
    last = found.Histograms(tag)[-1].histogram_value
    kernel = model.get_layer("head").get_weights()[0]
    assert (last.num, last.min, last.max) == (kernel.size, kernel.min(), kernel.max())
    graph = graph_pb2.GraphDef.FromString(found.Graph().SerializeToString())
    assert any("head" in node.name for node in graph.node)


@pytest.mark.slow
def test_a_viewer_that_runs_shows_what_is_added(tmp_path: Path) -> None:
    """TensorBoard itself, asked as its page asks: a record is there within five seconds, and so are
    a graph and what a run told of it."""
    with engine.Graph().as_default() as graph, engine.Session() as session:
        x = engine.placeholder("float32", [None, 3], name="in/x")
        with engine.device("/device:cpu:0"):
            y = engine.identity(ops.exp(x), name="out/y")
        metadata = engine.RunMetadata()
        session.run(y, {x: np.ones((2, 3))}, engine.RunOptions(trace=True), metadata)
        with summary.FileWriter(tmp_path, graph) as graph_writer:
            graph_writer.add_run_metadata(metadata, "step 3", 3)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ("--logdir", str(tmp_path), "--port", str(port), "--reload_interval", "1")
    program = [sys.executable, "-m", "tensorboard.main", *options, "--load_fast", "false"]
    plugins = f"http://127.0.0.1:{port}/data/plugin"
    address = f"{plugins}/scalars/scalars?tag=loss&run=."

    def shown(count: int, seconds: float) -> list[list[float]]:
        deadline = time.monotonic() + seconds
        while True:
            try:
                with urllib.request.urlopen(address, timeout=5) as reply:
                    found: list[list[float]] = json.loads(reply.read())
            except OSError:  # it starts, or has not read anything yet
                found = []
            if len(found) >= count:
                return found
            assert time.monotonic() < deadline, f"{len(found)} records after {seconds} seconds"
            time.sleep(0.1)

    with summary.create_file_writer(tmp_path) as writer, writer.as_default():
        summary.scalar("loss", 1.5, 0)
        writer.flush()
        process = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            assert [row[1:] for row in shown(1, 60)] == [[0, 1.5]]
            summary.scalar("loss", 0.5, 10)
            writer.flush()
            found = shown(2, 5)
            about = read_url(f"{plugins}/graphs/info")
            nodes = read_url(f"{plugins}/graphs/graph?run=.&conceptual=false")
            told = read_url(f"{plugins}/graphs/run_metadata?run=.&tag=step%203")
        finally:
            process.terminate()
            process.wait()
    assert [row[1:] for row in found] == [[0, 1.5], [10, 0.5]]
    assert found[0][0] <= found[1][0]  # the wall time, for the axes of time
    (run,) = json.loads(about).values()
    assert run["run_graph"]
    assert run["tags"]["step 3"]["profile"]
    message = text_format.Parse(nodes, graph_pb2.GraphDef())
    shown_nodes = {node.name: node for node in message.node}
    assert list(shown_nodes) == [op.name for op in graph.operations]
    assert list(shown_nodes["out/y"].input) == ["Exp"]
    assert shown_nodes["out/y"].device == "/device:cpu:0"
    (shape,) = shown_nodes["out/y"].attr["_output_shapes"].list.shape
    assert [d.size for d in shape.dim] == [-1, 3]
    (device,) = text_format.Parse(told, config_pb2.RunMetadata()).step_stats.dev_stats
    stats = {node.node_name: node for node in device.node_stats}
    assert {"Exp", "out/y"} <= set(stats)
    assert all(node.all_end_rel_micros >= 1 for node in stats.values())
    (output,) = stats["Exp"].output
    assert output.tensor_description.allocation_description.requested_bytes == 2 * 3 * 4


def read_url(address: str) -> str:
    with urllib.request.urlopen(address, timeout=30) as reply:
        return str(reply.read().decode())
