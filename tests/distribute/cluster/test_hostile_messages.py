"""Whatever bytes come for a message: an error of laminar's, and a server that goes on."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar import engine as eng
from laminar.distribute.cluster.messages import WIRE_VERSION, messages, pack, unpack
from laminar.distribute.cluster.peers import LocalCall, handlers
from laminar.engine import errors
from laminar.engine.graph.exchange import export_graph
from laminar.engine.runtime import RunOptions, SessionConfig

from .local_cluster import LocalCluster, local_cluster

MASTER, WORKER = "laminar.MasterService", "laminar.WorkerService"


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with local_cluster({"worker": 1}) as found:
        yield found


@pytest.fixture(scope="module")
def answers(cluster: LocalCluster) -> dict[str, Any]:
    """What answers bytes, by the names of all methods."""
    made: Any = cluster.servers["worker:0"].made
    return {**handlers(MASTER, made.master.service), **handlers(WORKER, made.worker.service)}


def ask(answers: dict[str, Any], method: str, data: bytes) -> Any:
    """The answer of a method, or the error of laminar's that it raises."""
    call = LocalCall()
    try:
        return answers[method](data, call)
    except errors.InternalError as error:
        raise AssertionError(f"{method}: {error}") from error
    except errors.LaminarError as error:
        return error
    finally:
        call.end()


def graph_message() -> Any:
    with eng.Graph().as_default() as graph:
        x = eng.placeholder("float32", [None, 2], name="x")
        y = eng.while_loop(
            lambda i, y: i < 3, lambda i, y: (i + 1, y * 2.0 + 1.0), [np.int32(0), x]
        )[1]
        eng.identity(y, name="y")
    return export_graph(graph, exact=True).message


def requests(handle: str = "s") -> dict[str, bytes]:
    """A good request for each method; of a master's session, of that handle."""
    m = messages()
    config = m.Config(placement="priority", jit_compile="never")
    graph = graph_message()
    part = m.Part(device="/job:worker/task:0/device:cpu:0", graph=graph, fetch=["y:0"])
    part.feed.add(index=0, tensor="x:0")
    value = [np.ones((1, 2), np.float32)]
    return {
        f"{MASTER}/CreateSession": pack(
            m.CreateSessionRequest(wire_version=WIRE_VERSION, graph=graph, config=config), []
        ),
        f"{MASTER}/ExtendSession": pack(
            m.ExtendSessionRequest(session_handle=handle, graph=graph, replaces=True), []
        ),
        f"{MASTER}/PartialRunSetup": pack(
            m.PartialRunSetupRequest(session_handle=handle, feed=["x:0"], fetch=["y:0"]), []
        ),
        f"{MASTER}/RunStep": pack(
            m.RunStepRequest(session_handle=handle, feed=["x:0"], fetch=["y:0"], request_id=1),
            value,
        ),
        f"{MASTER}/Reset": pack(m.ResetRequest(container=["c"]), []),
        f"{WORKER}/CreateWorkerSession": pack(
            m.CreateWorkerSessionRequest(
                session_handle="w", wire_version=WIRE_VERSION, config=config, lease_seconds=60
            ),
            [],
        ),
        f"{WORKER}/RegisterGraph": pack(
            m.RegisterGraphRequest(session_handle="fuzzed", part=[part]), []
        ),
        f"{WORKER}/RunGraph": pack(
            m.RunGraphRequest(session_handle="fuzzed", graph_handle="g", step_id=3), value
        ),
        f"{WORKER}/CleanupGraph": pack(m.CleanupGraphRequest(session_handle="fuzzed"), []),
        f"{WORKER}/Heartbeat": pack(m.HeartbeatRequest(session_handle=["fuzzed"]), []),
    }


@pytest.fixture(scope="module")
def good(answers: dict[str, Any]) -> dict[str, bytes]:
    """A request for each method that goes well, or nearly so: there are the sessions it needs."""
    create = f"{MASTER}/CreateSession"
    response = answers[create](requests()[create], LocalCall())
    made, _ = unpack("CreateSessionResponse", response)
    request = messages().CreateWorkerSessionRequest(
        session_handle="fuzzed", wire_version=WIRE_VERSION, lease_seconds=600
    )
    request.config.placement, request.config.jit_compile = "priority", "never"
    answers[f"{WORKER}/CreateWorkerSession"](pack(request, []), LocalCall())
    return requests(made.session_handle)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Bytes with some flipped, left out, doubled or put in."""
    found = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(found) + 1)
        kind = rng.randrange(4)
        if kind == 0 and place < len(found):
            found[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del found[place : place + rng.randint(1, 8)]
        elif kind == 2:
            found[place:place] = found[place : place + rng.randint(1, 8)]
        else:
            found[place:place] = rng.randbytes(rng.randint(1, 4))
    return bytes(found)


@pytest.mark.parametrize("method", sorted(requests()))
def test_mutated_requests(
    answers: dict[str, Any], good: dict[str, bytes], cluster: LocalCluster, method: str
) -> None:
    rng = random.Random(method)
    for _ in range(150):
        ask(answers, method, mutated(good[method], rng))
    with eng.Graph().as_default(), eng.Session(cluster.target()) as alive:
        assert alive.run(eng.constant(1) + 1) == 2


@given(st.sampled_from(sorted(requests())), st.binary(max_size=200))
def test_any_bytes(method: str, data: bytes) -> None:
    kind = f"{method.rpartition('/')[2]}Request"
    try:
        message, values = unpack(kind, data)
    except errors.LaminarError:
        return
    again, same = unpack(kind, pack(message, values))
    assert again == message
    assert len(same) == len(values)


def test_all_of_a_config_travels_or_is_refused() -> None:
    """A field that is new has to be thought of."""
    from laminar.distribute.cluster.messages import read_config, write_config

    config = SessionConfig(
        allow_soft_placement=True,
        placement="simulated",
        place_pruned_graph=False,
        log_device_placement=True,
        lossy_transfers=True,
        delay_receives=False,
        jit_compile=False,
        optimize=True,
        inter_op_threads=[1, 2],
        operation_timeout_in_ms=3,
        device_filters=["/job:a"],
    )
    of_the_client = {
        "allow_growth",
        "device_count",
        "memory_limit_bytes",
        "placement_file",
        "rpc_for_inprocess_master",
        "credentials",
    }
    plain = SessionConfig()
    for name in vars(plain):
        assert (getattr(config, name) == getattr(plain, name)) == (name in of_the_client), name
    message = messages().Config()
    write_config(message, config)
    assert read_config(message) == config


def test_all_of_the_options_travel() -> None:
    from laminar.distribute.cluster.messages import read_options, write_options

    options = RunOptions(1.5, True, True, 2)
    message = messages().Options()
    write_options(message, options)
    assert read_options(message) == options
    plain = RunOptions()
    assert all(getattr(options, name) != getattr(plain, name) for name in vars(plain))
