"""Summaries in graphs, functions and eager code, and the event files that they come to."""

from __future__ import annotations

import io
import struct
import threading
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import laminar
from laminar import engine, ops
from laminar.engine import summary, wire
from laminar.engine.errors import (
    DataLossError,
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    ShapeError,
)

rng = np.random.default_rng(0)


def events(writer: summary.FileWriter) -> list[summary.Event]:
    writer.flush()
    return list(summary.read_events(writer.path))


def values(writer: summary.FileWriter) -> list[tuple[int, str, float | None]]:
    """Step, tag and number of all summaries."""
    found = [e for e in events(writer) if e.summary is not None]
    return [(e.step, v.tag, v.simple_value) for e in found for v in e.summary.value]  # type: ignore[union-attr]  # looked at above


def test_merged_summaries_of_a_session(tmp_path: Path) -> None:
    graph = engine.Graph()
    with graph.as_default():
        assert summary.merge_all() is None
        x = engine.placeholder("float32", [4], name="x")
        with graph.name_scope("train"):
            summary.scalar("loss", ops.mean(x))
        summary.histogram("weights", x)
        summary.image("filters", ops.reshape(x, (1, 2, 2, 1)), max_outputs=1)
        merged = summary.merge_all()
    data = np.array([0.0, 0.25, 0.5, 1.0], "float32")
    with engine.Session(graph=graph) as session, summary.FileWriter(tmp_path, graph) as writer:
        for step in (0, 10, 20):
            writer.add_summary(session.run(merged, {x: data * (1 + step)}), step)
    with pytest.raises(FailedPreconditionError, match="is closed"):
        writer.add_summary(summary.Summary(), 1)
    found = list(summary.read_events(writer.path))
    assert found[0].file_version == "brain.Event:2"
    assert found[1].graph_def is not None
    records = found[2:]
    assert [e.step for e in records] == [0, 10, 20]
    assert all(a.wall_time <= b.wall_time for a, b in zip(found, found[1:], strict=False))
    for event in records:
        given = data * (1 + event.step)
        assert event.summary is not None
        loss, weights, filters = event.summary.value
        assert (loss.tag, weights.tag, filters.tag) == ("train/loss", "weights", "filters")
        assert loss.simple_value == pytest.approx(given.mean(), rel=1e-6)
        histogram = weights.histo
        assert histogram is not None
        np.testing.assert_allclose(
            (histogram.min, histogram.max, histogram.num, histogram.sum, histogram.sum_squares),
            (given.min(), given.max(), 4, given.sum(), np.square(given).sum()),
            rtol=1e-6,
        )
        limits, counts = np.array(histogram.bucket_limit), np.array(histogram.bucket)
        assert counts.sum() == 4
        for low, high, count in zip(limits, limits[1:], counts[1:], strict=False):
            is_last = high == limits[-1]
            assert count == np.sum((given >= low) & ((given <= high) if is_last else given < high))
        assert filters.image is not None
        with Image.open(io.BytesIO(filters.image.encoded_image_string)) as picture:
            pixels = np.asarray(picture)
        wanted = np.round(np.clip(given / max(given.max(), 1), 0, 1) * 255)
        np.testing.assert_allclose(pixels, wanted.reshape(2, 2), atol=1)


def test_the_writer_and_the_condition_are_asked_at_each_call(tmp_path: Path) -> None:
    def plain(x: Any) -> Any:
        summary.scalar("x", x, step=3)
        return x * 2

    x = ops.convert_to_tensor(1.5)
    traced = laminar.function(plain)
    for f in (plain, traced):
        first, second = (summary.create_file_writer(tmp_path) for _ in range(2))
        with first.as_default():
            f(x)
            with summary.record_if(False):
                f(x)
        with second.as_default():
            f(x * 2)
        f(x)  # nobody writes
        assert values(first) == [(3, "x", 1.5)]
        assert values(second) == [(3, "x", 3.0)]
        first.close()
        second.close()
    assert traced.trace_count == 1


def test_every_tenth_step(tmp_path: Path) -> None:
    step = engine.Variable(np.int64(0))

    @laminar.function
    def train(x: Any) -> Any:
        summary.scalar("loss", x)
        return step.assign_add(1)

    def is_tenth() -> bool:
        return int(step.numpy()) % 10 == 0

    with summary.create_file_writer(tmp_path) as writer:
        with writer.as_default(step=step), summary.record_if(is_tenth):
            for i in range(30):
                train(ops.convert_to_tensor(float(i)))
            assert summary.get_step() == 30
        assert values(writer) == [(0, "loss", 0.0), (10, "loss", 10.0), (20, "loss", 20.0)]
    assert train.trace_count == 1
    assert summary.get_step() is None


def test_blocks_inside_of_a_function_hold_for_what_is_in_them(tmp_path: Path) -> None:
    count = engine.Variable(0, dtype="int64")
    own, writer = summary.FileWriter(tmp_path / "own"), summary.FileWriter(tmp_path / "other")

    def step(x: Any) -> None:
        count.assign_add(1)
        with summary.record_if(count % 10 == 0):
            summary.scalar("tenth", x, step=count)
        with summary.record_if(False):
            summary.scalar("never", x, step=count)
        with summary.record_if(lambda: True), own.as_default(step=5):
            summary.scalar("own", x)
        numbers: Any = ops.arange(3)
        for i in numbers:
            with summary.record_if(i > 1):
                summary.scalar("index", i, step=count)

    x = engine.constant(2.0)
    for run in (step, engine.function(step)):
        with writer.as_default():
            for _ in range(10):
                run(x)
            with summary.record_if(False):
                run(x)  # as the blocks inside say
    for found, times in ((values(writer), 22), (values(own), 22)):
        tags = [tag for _, tag, _ in found]
        assert tags.count("index") + tags.count("own") == times
    assert [(s, v) for s, tag, v in values(writer) if tag == "tenth"] == [(10, 2.0), (20, 2.0)]
    assert set(values(own)) == {(5, "own", 2.0)}
    assert {tag for _, tag, _ in values(writer)} == {"tenth", "index"}


def test_a_graph_that_writes_summaries_is_written() -> None:
    f = engine.function(lambda x: summary.scalar("loss", x, step=1))
    graph_def = f.concrete(engine.TensorSpec([], "float32")).graph.as_graph_def()
    with engine.Graph().as_default() as graph:
        engine.import_graph_def(engine.GraphDef.FromString(graph_def.SerializeToString()), name="")
    assert [op.type for op in graph.operations][-1] == "WriteSummary"


def test_a_training_step_of_fit_writes(tmp_path: Path) -> None:
    class Told(laminar.Sequential):
        def train_step(self, data: Any) -> Any:
            found = super().train_step(data)
            summary.scalar("loss", found["loss"], step=self.optimizer.iterations)
            return found

    model = Told([laminar.layers.Input((2,)), laminar.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = rng.normal(size=(8, 2)).astype("float32"), np.zeros((8, 1), "float32")
    with summary.create_file_writer(tmp_path) as writer, writer.as_default():
        history = model.fit(x, y, batch_size=8, epochs=3, verbose=0)
    found = values_of(writer)
    assert [step for step, _, _ in found] == [1, 2, 3]
    losses = [number for _, _, number in found]
    assert losses == pytest.approx(history.history["loss"], rel=1e-5)


def values_of(writer: summary.FileWriter) -> list[tuple[int, str, float | None]]:
    """As `values`, of a writer that is closed."""
    found = [e for e in summary.read_events(writer.path) if e.summary is not None]
    return [(e.step, v.tag, v.simple_value) for e in found for v in e.summary.value]  # type: ignore[union-attr]  # looked at above


def test_eager_code_and_other_threads(tmp_path: Path) -> None:
    assert not summary.should_record()
    assert not bool(summary.scalar("x", 1.0, step=1))
    with summary.create_file_writer(tmp_path) as writer:
        with writer.as_default():
            assert summary.should_record()
            assert bool(summary.scalar("here", 1.0, step=1))
            with pytest.raises(InvalidArgumentError, match="nothing says of which step it is"):
                summary.scalar("lost", 1.0)
            thread = threading.Thread(target=summary.scalar, args=("there", 2.0, 2))
            thread.start()
            thread.join()
            summary.set_step(7)
            try:
                summary.histogram("empty", np.array([np.nan]))
            finally:
                summary.set_step(None)
        found = values(writer)
    assert found == [(1, "here", 1.0), (2, "there", 2.0), (7, "empty", None)]


def test_texts_and_sounds(tmp_path: Path) -> None:
    tone = np.sin(np.arange(100) / 5).astype("float32")
    with summary.create_file_writer(tmp_path) as writer:
        with writer.as_default(step=4):
            summary.text("note", "**äöü**")
            summary.text("rows", ["a", "b"])
            summary.audio("tone", np.stack([tone, -tone])[:, :, None], 8000, max_outputs=2)
        found = [v for e in events(writer) if e.summary is not None for v in e.summary.value]
    note, rows, first, second = found
    assert note.text == ("**äöü**".encode(),)
    assert rows.text == (b"a", b"b")
    assert (first.tag, second.tag) == ("tone/0", "tone/1")
    assert second.audio is not None
    assert (second.audio.sample_rate, second.audio.num_channels) == (8000, 1)
    with wave.open(io.BytesIO(second.audio.encoded_audio_string)) as file:
        assert (file.getframerate(), file.getnframes()) == (8000, 100)
        levels = np.frombuffer(file.readframes(100), "<i2")
    np.testing.assert_allclose(levels / 32767, -tone, atol=1 / 32767)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: summary.scalar("s", [1.0, 2.0], 1), ShapeError, "is of one number"),
        (lambda: summary.scalar("s", "text", 1), DTypeError, "is not of string"),
        (lambda: summary.image("i", np.zeros((2, 2)), 1), ShapeError, "expected \\(batch, height"),
        (lambda: summary.image("i", np.zeros((1, 2, 2, 2)), 1), ShapeError, "1, 3 or 4"),
        (
            lambda: summary.image("i", np.zeros((1, 2, 2, 1)), 1, max_outputs=0),
            InvalidArgumentError,
            "max_outputs must be at least 1",
        ),
        (lambda: summary.audio("a", np.zeros(3), 8000, 1), ShapeError, "expected \\(batch, frames"),
        (lambda: summary.audio("a", np.zeros((1, 3)), 0, 1), InvalidArgumentError, "be positive"),
        (lambda: summary.text("t", [["a"]], 1), ShapeError, "a text or a list of texts"),
    ],
)
def test_what_is_refused(tmp_path: Path, make: Any, kind: Any, message: str) -> None:
    with summary.create_file_writer(tmp_path) as writer, writer.as_default():
        with pytest.raises(kind, match=message):
            make()
        assert summary.scalar("still", 1.0, 2)
        assert values(writer) == [(2, "still", 1.0)]


def test_two_summaries_of_one_tag_are_not_merged() -> None:
    graph = engine.Graph()
    with graph.as_default():
        one = summary.scalar("a", 1.0)
        merged = summary.merge([one, one])
    with (
        engine.Session(graph=graph) as session,
        pytest.raises(InvalidArgumentError, match="two summaries have the tag 'a'"),
    ):
        session.run(merged)


def test_the_graph_that_is_written_names_all(tmp_path: Path) -> None:
    graph = engine.Graph()
    with graph.as_default():
        x = engine.placeholder("float32", [None, 3], name="in/x")
        first, _ = ops.split(x, [1], axis=1)
        with graph.control_dependencies([first]):
            engine.identity(x, name="out")
    with summary.FileWriter(tmp_path, graph) as writer:
        data = next(e.graph_def for e in events(writer) if e.graph_def is not None)
    assert isinstance(first, engine.GraphTensor)
    nodes: dict[str, tuple[str, list[str], list[list[int]]]] = {}
    kind = wire.Kind("a GraphDef", "")
    for number, code in (message := wire.Message(data, kind)).fields():
        if number != 1:
            message.skip(code)
            continue
        node = message.span()
        name, op, inputs, shapes = "", "", [], []
        for field, inner in node.fields():
            if field == 1:
                name = node.text()
            elif field == 2:
                op = node.text()
            elif field == 3:
                inputs.append(node.text())
            elif field == 5:
                shapes.append(len(node.bytes()))
            else:
                node.skip(inner)
        nodes[name] = op, inputs, shapes  # type: ignore[assignment]  # lengths stand for shapes
    assert list(nodes) == [op.name for op in graph.operations]
    assert nodes["out"][1] == ["in/x", f"^{first.op.name}"]
    assert all(len(shapes) == 1 for _, _, shapes in nodes.values())


def test_run_metadata_has_a_tag_of_its_own(tmp_path: Path) -> None:
    graph = engine.Graph()
    with graph.as_default():
        y = ops.exp(engine.constant(1.0), name="power")
    metadata = engine.RunMetadata()
    with engine.Session(graph=graph) as session, summary.FileWriter(tmp_path) as writer:
        session.run(y, options=engine.RunOptions(trace=True), run_metadata=metadata)
        writer.add_run_metadata(metadata, "step1", 1)
        with pytest.raises(InvalidArgumentError, match="the tag 'step1' is taken"):
            writer.add_run_metadata(metadata, "step1", 2)
        found = [e.tagged_run_metadata for e in events(writer) if e.tagged_run_metadata]
    ((tag, data),) = found
    assert tag == "step1"
    assert b"power" in data


def test_writers_are_flushed_closed_and_opened_again(tmp_path: Path) -> None:
    writer = summary.FileWriterCache.get(tmp_path)
    assert summary.FileWriterCache.get(str(tmp_path)) is writer
    for step in range(25):  # more than wait at once
        writer.add_summary(summary.Summary([summary.SummaryValue("a", float(step))]), step)
    first = writer.path
    writer.close()
    writer.close()
    assert [s for s, _, _ in values_of(writer)] == list(range(25))
    writer.reopen()
    assert writer.path != first
    log = summary.SessionLog(summary.SessionLog.CHECKPOINT, "model.ckpt-1", "saved")
    writer.add_session_log(log, 1)
    summary.FileWriterCache.clear()
    assert [e.session_log for e in summary.read_events(writer.path)][1:] == [log]
    with pytest.raises(InvalidArgumentError, match="expected the message of a summary"):
        writer.add_summary(3.0)
    with pytest.raises(DataLossError, match="not a Summary"):
        writer.add_summary(b"\xff\xff")


def test_a_file_that_is_still_written_ends_early(tmp_path: Path) -> None:
    with summary.FileWriter(tmp_path) as writer:
        writer.add_summary(summary.Summary([summary.SummaryValue("a", 1.0)]), 1)
    whole = Path(writer.path).read_bytes()
    path = tmp_path / "torn"
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        found = list(summary.read_events(path))
        assert len(found) == (1 if end >= 12 + struct.unpack("<Q", whole[:8])[0] + 4 else 0)
    flipped = bytearray(whole)
    flipped[20] ^= 1
    path.write_bytes(flipped)
    with pytest.raises(DataLossError, match="checksum"):
        list(summary.read_events(path))


def test_what_is_added_late_takes_all_to_the_system(tmp_path: Path) -> None:
    with summary.FileWriter(tmp_path, flush_secs=0) as writer:
        writer.add_session_log(summary.SessionLog(summary.SessionLog.START), 3)
        assert [e.step for e in summary.read_events(writer.path)] == [0, 3]
    with summary.FileWriter(tmp_path) as writer:
        writer.add_session_log(summary.SessionLog(summary.SessionLog.START), 3)
        assert list(summary.read_events(writer.path)) == []
