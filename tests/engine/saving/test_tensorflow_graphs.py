"""Graphs of TensorFlow 1: imported, restored and trained on, with TensorFlow's own results."""

import base64
import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import engine
from laminar.engine import errors
from laminar.engine.saving import MetaGraph
from laminar.engine.saving.meta_graph_text import messages
from laminar.engine.saving.tensorflow import calls

FILE = Path(__file__).with_name("tensorflow_graphs.json")
RECORDED: dict[str, Any] = json.loads(FILE.read_text())["graphs"]
TYPES = {"x": {"texts": "int32", "words": "int32", "resource_words": "int32"}}


def unpack(name: str, folder: Path) -> str:
    for file, data in RECORDED[name]["files"].items():
        (folder / file).write_bytes(lzma.decompress(base64.b85decode(data)))
    return str(folder / name)


def feeds(name: str) -> dict[str, Any]:
    record = RECORDED[name]
    kind = TYPES["x"].get(name, "float32")
    return {"x:0": np.array(record["x"], kind), "y:0": np.array(record["y"], "int32")}


def train_on(session: engine.Session, name: str, scope: str = "") -> list[float]:
    (loss,), train = engine.get_collection("loss"), engine.get_collection("train")[0]
    data = {scope + key: value for key, value in feeds(name).items()}
    return [float(session.run([loss, train], data)[0]) for _ in range(4)]


def check_variables(session: engine.Session, name: str) -> None:
    expected = {key[:-2]: value for key, value in RECORDED[name]["variables"].items()}
    found = {v.name: session.run(v) for v in engine.global_variables()}
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-5, atol=1e-6, err_msg=key)


@pytest.mark.parametrize("name", RECORDED)
def test_restored_and_trained_on(name: str, tmp_path: Path) -> None:
    prefix = unpack(name, tmp_path)
    with engine.Graph().as_default(), engine.Session() as session:
        saver = engine.import_meta_graph(f"{prefix}.meta")
        assert saver is not None
        saver.restore(session, prefix)
        losses = train_on(session, name)
        np.testing.assert_allclose(losses, RECORDED[name]["losses"], rtol=1e-5)
        check_variables(session, name)


@pytest.mark.parametrize("name", ["descent", "branches", "loops", "functions"])
def test_saved_again_it_goes_on(name: str, tmp_path: Path) -> None:
    """As a graph of laminar: what is exported of it is read without TensorFlow's rules."""
    prefix = unpack(name, tmp_path)
    with engine.Graph().as_default(), engine.Session() as session:
        saver = engine.import_meta_graph(f"{prefix}.meta")
        assert saver is not None
        saver.restore(session, prefix)
        again = saver.save(session, tmp_path / "again")
    assert isinstance(
        MetaGraph.from_bytes(Path(f"{again}.meta").read_bytes()).graph_def, engine.GraphDef
    )
    with engine.Graph().as_default(), engine.Session() as session:
        saver = engine.import_meta_graph(f"{again}.meta")
        assert saver is not None
        saver.restore(session, again)
        np.testing.assert_allclose(train_on(session, name), RECORDED[name]["losses"], rtol=1e-5)


def test_text_and_a_scope(tmp_path: Path) -> None:
    """The same graph as text; in a scope, its variables are initialised and called by it."""
    prefix = unpack("descent", tmp_path)
    with engine.Graph().as_default(), engine.Session() as session:
        saver = engine.import_meta_graph(f"{prefix}.text", import_scope="mine")
        assert saver is not None
        names = {v.name for v in engine.trainable_variables()}
        assert names == {"mine/layer/w", "mine/layer/b", "mine/w2"}
        session.run(engine.global_variables_initializer())
        w = session.run("mine/layer/w/read:0")
        assert 0.1 < np.std(w) < 1
        assert np.abs(w).max() <= 1  # truncated at two standard deviations of 0.5
        saver.restore(session, prefix)
        losses = train_on(session, "descent", "mine/")
        np.testing.assert_allclose(losses, RECORDED["descent"]["losses"], rtol=1e-5)
        data = {f"mine/{k}": v for k, v in feeds("descent").items()}
        message = session.run("mine/Merge/MergeSummary:0", data)
        tags = [v.tag for v in engine.summary.Summary.from_bytes(message).value]
        assert tags == ["loss", "weights"]


def meta(edit: Any, tmp_path: Path) -> bytes:
    """The graph with a change to its message."""
    prefix = unpack("descent", tmp_path)
    found = messages().TensorFlowMetaGraphDef.FromString(Path(f"{prefix}.meta").read_bytes())
    edit(found)
    data: bytes = found.SerializeToString()
    return data


def node(found: Any, name: str) -> Any:
    return next(n for n in found.graph_def.node if n.name == name)


def _unknown(found: Any) -> None:
    node(found, "Relu").op = "CudnnRNNV3"


def _loop(found: Any) -> None:
    node(found, "MatMul").input[0] = "Relu"


def _missing(found: Any) -> None:
    node(found, "MatMul").input[0] = "gone"


def _output(found: Any) -> None:
    node(found, "MatMul").input[0] = "x:7"


def _twice(found: Any) -> None:
    node(found, "MatMul").name = "Relu"


def _function(found: Any) -> None:
    node(found, "Relu").op = "PartitionedCall"


def _shape(found: Any) -> None:
    node(found, "x").attr["shape"].shape.dim[1].size = 7


def _large(found: Any) -> None:
    value = node(found, "Const").attr["value"].tensor
    for size in (1 << 40, 1 << 40):
        value.tensor_shape.dim.add(size=size)


def _few(found: Any) -> None:
    value = node(found, "Const").attr["value"].tensor
    value.tensor_content = value.tensor_content[:-4]


def _no_saver(found: Any) -> None:
    found.saver_def.restore_op_name = "gone"


def _with_function(found: Any, calls: list[str]) -> Any:
    """A function f(x), called in the place of Relu, which calls some."""
    node(found, "Relu").op = "f"
    function = found.graph_def.library.function.add()
    function.signature.name = "f"
    function.signature.input_arg.add(name="x")
    function.signature.output_arg.add(name="y")
    source = "x"
    for i, op in enumerate(calls):
        function.node_def.add(name=f"n{i}", op=op, input=[source])
        source = f"n{i}:y:0"
    function.ret["y"] = source
    return function


def _recursive(found: Any) -> None:
    _with_function(found, ["f"])


def _many(found: Any) -> None:
    _with_function(found, ["f0", "f0"])
    for i in range(40):
        function = _with_function(found, [f"f{i + 1}"] * 2 if i < 39 else ["Relu"])
        function.signature.name = f"f{i}"


def _no_function(found: Any) -> None:
    node(found, "Relu").op = "PartitionedCall"
    node(found, "Relu").attr["f"].func.name = "gone"


def _arguments(found: Any) -> None:
    _with_function(found, []).signature.input_arg.add(name="more")


def _no_result(found: Any) -> None:
    _with_function(found, []).ret.clear()


def _inside(found: Any) -> None:
    _with_function(found, ["Relu"]).ret["y"] = "n7:y:0"


def _other_output(found: Any) -> None:
    _with_function(found, ["SparseSoftmaxCrossEntropyWithLogits"])


def _endless(found: Any) -> None:
    """A loop whose frame is left and never entered."""
    node(found, "Relu").op = "Exit"


@pytest.mark.parametrize(
    ("edit", "kind", "message"),
    [
        (_recursive, errors.UnimplementedError, "'f' calls itself"),
        (_no_function, errors.NotFoundError, "no function 'gone'"),
        (_arguments, errors.DataLossError, "takes 2 inputs, got 1"),
        (_no_result, errors.DataLossError, "does not say what 'y' is"),
        (_inside, errors.DataLossError, "there is no 'n7:y:0'"),
        (_other_output, errors.DataLossError, "has no output 'y'"),
        (_unknown, errors.UnimplementedError, "CudnnRNNV3"),
        (_loop, errors.InvalidArgumentError, "cycle"),
        (_missing, errors.NotFoundError, "'gone'"),
        (_output, errors.NotFoundError, "has 1 outputs"),
        (_twice, errors.InvalidArgumentError, "two nodes 'Relu'"),
        (_function, errors.DataLossError, "names no function"),
        (_shape, errors.ShapeError, "node 'MatMul'"),
        (_large, errors.DataLossError, "a tensor of"),
        (_few, errors.DataLossError, "has 2 values"),
        (_no_saver, errors.NotFoundError, "gone"),
    ],
)
def test_what_is_refused(edit: Any, kind: type[Exception], message: str, tmp_path: Path) -> None:
    data = meta(edit, tmp_path)
    with engine.Graph().as_default() as graph, pytest.raises(kind, match=message):
        engine.import_meta_graph(MetaGraph.from_bytes(data))
    if edit is not _no_saver:
        assert not graph.operations


def test_functions_that_multiply_are_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "_MOST_NODES", 1000)
    data = meta(_many, tmp_path)
    with (
        engine.Graph().as_default(),
        pytest.raises(errors.InvalidArgumentError, match="more than 1,000 nodes"),
    ):
        engine.import_meta_graph(MetaGraph.from_bytes(data))


def test_a_loop_that_is_never_entered_is_an_error_of_its_run(tmp_path: Path) -> None:
    data = meta(_endless, tmp_path)
    with engine.Graph().as_default(), engine.Session() as session:
        engine.import_meta_graph(MetaGraph.from_bytes(data))
        session.run(engine.global_variables_initializer())
        with pytest.raises(errors.InvalidArgumentError, match="outside of any loop"):
            train_on(session, "descent")


@pytest.mark.parametrize("name", ["loops", "functions", "descent"])
def test_damage_raises_laminars_errors(name: str, tmp_path: Path) -> None:
    whole = Path(f"{unpack(name, tmp_path)}.meta").read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(60):
        data = bytearray(whole)
        for place in rng.integers(0, len(data), 3):
            data[place] ^= 1 << rng.integers(0, 8)
        with engine.Graph().as_default():
            try:
                engine.import_meta_graph(MetaGraph.from_bytes(bytes(data)))
            except errors.LaminarError:
                continue
