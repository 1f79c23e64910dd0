"""Devices: their names, their memory, their kernels, and who may add a type."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.compiler.native import threads
from laminar.engine.compiler.target.thread_count import num_threads
from laminar.engine.devices import (
    CpuDevice,
    DeviceSet,
    GpuDevice,
    list_devices,
    local_devices,
    register_device,
)
from laminar.engine.devices.cpu import num_cores
from laminar.engine.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
)
from laminar.engine.graph import FLOATING, TensorSpec
from laminar.engine.ops.core.cluster import thread_share
from laminar.engine.ops.core.registry import define
from laminar.engine.runtime import Machine, SessionConfig
from laminar.engine.runtime.workers import Workers
from tests.engine.cuda.strict_cupy import Array
from tests.engine.runtime.fake_gpu import fake_gpu, one_gpu, registered


@define("DeviceTestScale", dtypes=FLOATING)
def scale(x: TensorSpec) -> TensorSpec:
    """10 x, with a kernel for the CPU, and one for the type "fake" that counts."""
    return x


ran: list[str] = []


@scale.kernel("cpu")
def _scale_cpu(x: Any) -> Any:
    ran.append("cpu")
    return x * 10


@scale.kernel("fake")
def _scale_fake(x: Any) -> Any:
    ran.append("fake")
    return x * 10


class FakeDevice(CpuDevice):
    """A device of a third party's type."""

    device_type = "fake"


@define("TestOwnShare")
def own_share(x: TensorSpec) -> TensorSpec:
    """How many threads native code may use here, 0 for all that there are."""
    return x


@own_share.reference
def _own_share(xp: Any, x: Any) -> Any:
    return np.asarray(thread_share.count if thread_share.owner else 0, np.int64)


@pytest.fixture
def fake_type() -> Iterator[None]:
    """A registered type "fake", with one device."""
    with registered("fake", lambda index, count, limit: FakeDevice(index, limit_bytes=limit)):
        yield


# What there is


def test_several_cpus_share_the_cores() -> None:
    devices = local_devices({"cpu": 2})
    cpus = [d for d in devices if d.device_type == "cpu"]
    assert [d.name for d in cpus] == ["/job:localhost/device:cpu:0", "/job:localhost/device:cpu:1"]
    assert [d.num_threads for d in cpus if isinstance(d, CpuDevice)] == [
        max(1, num_cores() // 2)
    ] * 2


def test_each_cpu_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Native code that runs on a device uses the device's pool, and gives the same bits."""
    monkeypatch.setattr("laminar.engine.devices.cpu.num_cores", lambda: 8)
    devices = [CpuDevice(0, num_threads=2), CpuDevice(1, num_threads=3), CpuDevice(2)]
    x = np.random.default_rng(0).normal(size=(300, 300)).astype("float32")

    @eng.function
    def product(x: Any) -> Any:
        return eng.lookup("Tanh")(eng.lookup("MatMul")(x, x))

    threads.set_threads(8)
    try:
        expected = product(x).numpy()
        pools = []
        for device in devices:
            with device.running():
                assert num_threads() == device.num_threads
                pools.append(threads.pool())
                np.testing.assert_array_equal(product(x).numpy(), expected)
        assert [p and p.num_threads for p in pools] == [2, 3, 8]
        assert len(set(map(id, pools))) == 3
        assert num_threads() == 8
        assert threads.pool() is pools[2]
        threads.set_threads(1)
        with devices[0].running():
            assert num_threads() == 1
            assert threads.pool() is None
    finally:
        threads.set_threads(None)


def test_what_is_placed_on_a_cpu_has_its_share() -> None:
    with eng.Graph().as_default():
        shares = []
        for i in range(2):
            with eng.device(f"cpu:{i}"):
                shares.append(own_share(eng.constant(0, "int64")))
        with eng.Session(config=SessionConfig({"cpu": 2})) as session:
            found = session.run(shares)
    expected = max(1, num_cores() // 2) if num_cores() > 1 else 0
    assert found == [expected] * 2
    assert thread_share.owner is None


def test_the_same_counts_give_the_same_devices() -> None:
    assert local_devices({"cpu": 2}) is local_devices({"CPU": 2})
    assert local_devices({"cpu": 2})[-1] is not local_devices({"cpu": 3})[-1]


def test_incarnations_differ_and_are_not_zero() -> None:
    numbers = [d.incarnation for d in list_devices({"cpu": 4})]
    assert all(numbers)
    assert len(set(numbers)) == len(numbers)


def test_an_incarnation_changes_with_the_process() -> None:
    program = (
        "from laminar.engine.devices import list_devices; print(list_devices()[-1].incarnation)"
    )
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert int(other.stdout) != list_devices()[-1].incarnation


@pytest.mark.usefixtures("fake_type")
def test_a_registered_type_is_listed_and_runs_what_is_pinned_to_it() -> None:
    assert "/job:localhost/device:fake:0" in [d.name for d in list_devices()]
    with eng.Graph().as_default():
        x = eng.placeholder("float64", [2])
        with eng.device("/device:fake:0"):
            y = scale(x)
        z = scale(y)
        with eng.Session(config=SessionConfig()) as session:
            ran.clear()
            assert session.run(z, {x: [1.0, 2.0]}).tolist() == [100.0, 200.0]
    assert ran == ["fake", "cpu"]


@pytest.mark.usefixtures("fake_type")
def test_a_type_is_registered_once() -> None:
    with pytest.raises(AlreadyExistsError, match="'fake' is registered"):
        register_device("FAKE", lambda index, count, limit: FakeDevice(index))
    with pytest.raises(InvalidArgumentError, match="not a device name"):
        register_device("not a name", lambda index, count, limit: FakeDevice(index))


@pytest.mark.parametrize(
    ("count", "error", "message"),
    [
        ({"cpu": 0}, InvalidArgumentError, "got 0"),
        ({"cpu": -1}, InvalidArgumentError, "got -1"),
        ({"cpu": 1.5}, InvalidArgumentError, "got 1.5"),
        ({"cpu": True}, InvalidArgumentError, "got True"),
        ({"tpu": 1}, NotFoundError, "no device type 'tpu'"),
        ({"gpu": 99}, InvalidArgumentError, "is 99, and there are"),
    ],
)
def test_wrong_counts(count: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        local_devices(count)


def test_wrong_limits() -> None:
    with pytest.raises(InvalidArgumentError, match="must be bytes"):
        local_devices(None, {"cpu": 0})
    with pytest.raises(NotFoundError, match="no device type"):
        local_devices(None, {"tpu": 5})


def test_a_set_finds_devices_by_parts_of_names() -> None:
    devices = local_devices({"cpu": 2})
    assert devices.named("cpu:1").index == 1
    assert devices.named("/job:localhost/device:CPU:1").index == 1
    with pytest.raises(NotFoundError, match="no device is named"):
        devices.named("cpu:7")


# Memory


def test_memory_is_counted_once_until_nobody_holds_it() -> None:
    device = CpuDevice(limit_bytes=10_000)
    x = device.adopt(np.zeros(100))
    view = device.adopt(x[1:].reshape(3, 33))
    assert device.memory_stats().bytes_in_use == 800
    del x
    assert device.memory_stats().bytes_in_use == 800
    del view
    gc.collect()
    stats = device.memory_stats()
    assert (stats.bytes_in_use, stats.peak_bytes, stats.num_arrays) == (0, 800, 1)
    device.reset_peak()
    assert device.memory_stats().peak_bytes == 0


def test_a_limit_is_kept() -> None:
    device = CpuDevice(limit_bytes=1000)
    held = device.adopt(np.zeros(100))
    with pytest.raises(ResourceExhaustedError, match="800 of 1000 are in use"):
        device.adopt(np.zeros(100))
    del held
    device.adopt(np.zeros(100))


def test_what_is_received_counts_for_the_receiver_alone_as_long_as_it_holds_it() -> None:
    one, two = CpuDevice(0), CpuDevice(1)
    x = one.adopt(np.zeros(100))
    y = two.receive(x, one)
    assert np.shares_memory(x, y)
    assert two.memory_stats().bytes_in_use == 800
    del y
    assert (one.memory_stats().bytes_in_use, two.memory_stats().bytes_in_use) == (800, 0)
    assert one.receive(x, one) is x


def test_counting_bears_arrays_that_go_at_any_time() -> None:
    device = CpuDevice()

    def work() -> None:
        for i in range(300):
            device.adopt(np.zeros(1 + i % 7))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert device.memory_stats().bytes_in_use == 0
    assert device.memory_stats().num_arrays == 2400


def test_a_chain_holds_few_values_and_gives_them_back() -> None:
    size = 1 << 20  # 4 MB
    config = SessionConfig(memory_limit_bytes={"cpu": 1 << 30})
    with eng.Graph().as_default():
        x = y = eng.placeholder("float32", [size])
        for _ in range(50):
            y = y + 1.0
        with eng.Session(config=config) as session:
            (device,) = local_devices(None, config.memory_limit_bytes)
            session.run(y, {x: np.zeros(size, "float32")})  # makes the plan, with its constants
            before = device.memory_stats().bytes_in_use
            device.reset_peak()
            fetched = session.run(y, {x: np.zeros(size, "float32")})
            assert device.memory_stats().peak_bytes - before < 4 * 4 * size
            assert fetched[0] == 50
            del fetched
            gc.collect()
            assert device.memory_stats().bytes_in_use == before


def test_a_step_that_needs_more_than_the_limit_leaves_the_session_usable() -> None:
    config = SessionConfig(memory_limit_bytes={"cpu": 100_000})
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [None])
        y = x + 1.0
        with eng.Session(config=config) as session:
            with pytest.raises(ResourceExhaustedError, match="out of memory"):
                session.run(y, {x: np.zeros(20_000, "float32")})
            gc.collect()
            assert session.run(y, {x: np.zeros(2, "float32")}).tolist() == [1.0, 1.0]


# A GPU, or what looks like one


@pytest.fixture
def gpu() -> Iterator[GpuDevice]:
    """The GPU of all sessions of the test."""
    with one_gpu() as device:
        yield device


def test_math_goes_to_the_gpu_by_default(gpu: GpuDevice) -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [None, 3])
        w = eng.Variable(np.ones((3, 2), "float32"), name="w")
        y = eng.lookup("MatMul")(x, w.value)
        z = eng.lookup("Tanh")(y * 0.5)
        step = w.assign_add(np.ones((3, 2), "float32"))
        with eng.Session() as session:
            session.run(eng.global_variables_initializer())
            found = session.run(z, {x: np.ones((4, 3))})
            assert session.placement is not None
            places = {d.operation: d.device for d in session.placement.decisions}
            session.run(step)
            assert session.run(w).tolist() == [[2.0, 2.0]] * 3
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, np.tanh(np.full((4, 2), 1.5)), rtol=1e-6)
    assert set(places.values()) == {gpu.name}


def test_strings_stay_on_the_host(gpu: GpuDevice) -> None:
    with eng.Graph().as_default():
        s = eng.placeholder("string", [2])
        y = eng.lookup("Identity")(s)
        with eng.Session() as session:
            assert session.run(y, {s: [b"a\x00", b"b"]}).tolist() == [b"a\x00", b"b"]
            assert session.placement is not None
            assert session.placement.decisions[0].device == "/job:localhost/device:cpu:0"


def test_sizes_stay_on_the_host(gpu: GpuDevice) -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [None, 2])
        n = eng.lookup("Dim")(x, axis=0)
        mean = eng.lookup("Sum")(x, axis=(0,)) / eng.lookup("Cast")(n, dtype="float32")
        with eng.Session() as session:
            found = session.run([mean, n], {x: np.ones((4, 2))})
    assert found[0].tolist() == [1.0, 1.0]
    assert found[1] == 4
    assert len(gpu.xp.copies) == 2  # what was fed, and the size that is computed with


def test_a_trained_function_runs_on_the_gpu(gpu: GpuDevice) -> None:
    w = eng.Variable(np.ones((3, 1), "float32"), name="w")

    @eng.function
    def step(x: Any, y: Any) -> Any:
        with eng.GradientTape() as tape:
            loss = eng.lookup("Mean")(eng.lookup("Square")(eng.lookup("MatMul")(x, w.value) - y))
        (dw,) = tape.gradient(loss, [w])
        w.assign_sub(dw * 0.1)
        return loss

    x, y = np.ones((4, 3), "float32"), np.zeros((4, 1), "float32")
    concrete = step.concrete(eng.TensorSpec((None, 3)), eng.TensorSpec((None, 1)))
    concrete.machine = Machine(SessionConfig(allow_soft_placement=True))
    losses = [float(concrete(x, y).numpy()) for _ in range(3)]
    assert isinstance(w.store.value, Array)
    expected, v = [], np.ones((3, 1))
    for _ in range(3):
        expected.append(float(np.mean((x @ v) ** 2)))
        v -= 0.1 * 2 * x.T @ (x @ v) / 4
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(w.numpy(), v, rtol=1e-5)
    plus_one = w.value + 1.0  # computed at once, on the host
    np.testing.assert_allclose(plus_one.numpy(), v + 1, rtol=1e-5)
    w.assign_add(np.ones((3, 1), "float32"))
    concrete(x, y)  # and back
    assert isinstance(w.store.value, Array)


def test_gpu_copies_keep_the_bits() -> None:
    one, host = fake_gpu(0), CpuDevice()
    two = fake_gpu(1, beside=one)
    x = np.random.default_rng(0).normal(size=(5, 7)).astype("float32")
    there = one.receive(host.adopt(x), host)
    back = host.receive(two.receive(there, one), two)
    np.testing.assert_array_equal(back, x)
    assert type(back) is np.ndarray
    assert isinstance(there, Array)


def test_gpu_memory_runs_out_with_our_error() -> None:
    device = fake_gpu(limit_bytes=1000)
    held = device.put(np.zeros((2, 50), "float32"))
    used = r"gpu:0 is out of memory: 800 bytes.*512 of 1000"
    found = used + r".*float32\[2, 50\] of a copy from the host \(400 bytes\)"
    with pytest.raises(ResourceExhaustedError, match=found):
        device.put(np.zeros(100))
    assert device.memory_stats().bytes_in_use == 512
    del held
    assert device.memory_stats().bytes_in_use == 0
    assert device.description == "Fake GPU, compute capability 9.0"


@pytest.mark.parametrize(("limit", "reserved"), [(0.5, 32 << 20), (1 << 20, 1 << 20)])
def test_memory_is_taken_up_to_a_limit(limit: float, reserved: int, gpu: GpuDevice) -> None:
    config = SessionConfig(memory_limit_bytes={"gpu": limit}, allow_growth=False)
    gpu.limit_bytes = reserved
    fake: Any = gpu.gpu
    with eng.Graph().as_default():
        y = eng.constant(np.ones(3, "float32")) + 1.0
        with eng.Session(config=SessionConfig()) as session:
            session.run(y)
            assert not fake.reserved  # as it is needed
        with eng.Session(config=config) as session:
            assert session.run(y).tolist() == [2, 2, 2]
    assert fake.limit == reserved
    assert 0 < fake.reserved <= reserved


def test_shares_of_memory_that_make_no_sense(gpu: GpuDevice) -> None:
    for limit in (1.5, 0.0, -0.5, True, "half"):
        with pytest.raises(InvalidArgumentError, match="must be bytes, or a share"):
            eng.Session(config=SessionConfig(memory_limit_bytes={"gpu": limit}))  # type: ignore[dict-item]  # wrong ones, too
    with pytest.raises(InvalidArgumentError, match="share 0.5 of what nobody knows"):
        eng.Session(config=SessionConfig(memory_limit_bytes={"cpu": 0.5}))


# Threads


def test_a_worker_is_used_again_and_never_waited_for() -> None:
    workers = Workers()
    gate = threading.Event()
    done = threading.Semaphore(0)

    def blocked() -> None:
        gate.wait(30)
        done.release()

    for _ in range(20):
        workers.start(blocked)
    workers.start(done.release)  # it does not wait for the others
    assert done.acquire(timeout=30)
    gate.set()
    for _ in range(20):
        assert done.acquire(timeout=30)
    before = threading.active_count()
    for _ in range(50):
        workers.start(done.release)
        assert done.acquire(timeout=30)
    assert threading.active_count() <= before + 1


def test_a_set_of_devices_has_its_client_on_the_host() -> None:
    devices = DeviceSet([CpuDevice(1), fake_gpu(), CpuDevice(0)])
    assert [d.device_type for d in devices] == ["gpu", "cpu", "cpu"]
    assert devices.client.name == "/job:localhost/device:cpu:0"


def used(session: Any) -> list[Any]:
    found: list[Any] = session.placement.used
    return found


def reasons(session: Any) -> set[str]:
    return {d.reason for d in session.placement.decisions}


@pytest.mark.usefixtures("fake_type")
def test_a_type_that_nobody_asked_for_takes_no_part() -> None:
    """A step that does not name it runs as if it were not there, a session has it all the same."""
    with eng.Graph().as_default():
        y = eng.constant(2.0) * 3.0
        with eng.device("/device:fake:0"):
            z = scale(eng.constant([1.0]))
        with eng.Session(config=SessionConfig(optimize=False)) as session:
            assert session.run(y) == 6.0
            (cpu,) = used(session)
            assert cpu.is_plain  # the host's own kernels run, with nothing added
            assert reasons(session) == {"the only device"}
            assert session.run(z).tolist() == [10.0]
            assert "fake" in {d.device_type for d in used(session)}
        config = SessionConfig(device_count={"fake": 1})
        with eng.Session(config=config) as session:
            assert session.run(y) == 6.0
            assert reasons(session) != {"the only device"}


@pytest.mark.usefixtures("fake_type")
def test_a_type_is_unregistered() -> None:
    assert eng.DeviceSpec.from_string("/fake:0").device_type == "fake"
    eng.unregister_device("FAKE")
    with pytest.raises(InvalidArgumentError, match="'/fake:0' is not a device name"):
        eng.DeviceSpec.from_string("/fake:0")
    assert not [d for d in list_devices() if d.device_type == "fake"]
    with pytest.raises(NotFoundError, match="no device type 'fake'"):
        eng.unregister_device("fake")
    with pytest.raises(InvalidArgumentError, match="CPU cannot be unregistered"):
        eng.unregister_device("cpu")
    register_device("fake", lambda index, count, limit: FakeDevice(index))  # it is free again
    assert [d for d in list_devices() if d.device_type == "fake"]
