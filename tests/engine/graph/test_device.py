"""Device names: their grammar, and merging."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import DeviceSpec
from laminar.engine.graph.device import forget_device_type, know_device_type

PARSED = [
    pytest.param("", DeviceSpec(), "", id="empty"),
    pytest.param("cpu:0", DeviceSpec(None, None, None, "cpu", 0), "/device:cpu:0", id="short"),
    pytest.param("/gpu:1", DeviceSpec(None, None, None, "gpu", 1), "/device:gpu:1", id="slash"),
    pytest.param("/GPU:*", DeviceSpec(None, None, None, "gpu"), "/device:GPU:*", id="any-index"),
    pytest.param("/device:CPU", DeviceSpec(None, None, None, "cpu"), "/device:CPU:*", id="type"),
    pytest.param("/job:ps", DeviceSpec("ps"), "/job:ps", id="job"),
    pytest.param("/job:*/task:*", DeviceSpec(), "", id="any"),
    pytest.param(
        "/job:ps/replica:0/task:0/device:GPU:0",
        DeviceSpec("ps", 0, 0, "gpu", 0),
        "/job:ps/replica:0/task:0/device:GPU:0",
        id="full",
    ),
    pytest.param(
        "/task:2/job:worker", DeviceSpec("worker", None, 2), "/job:worker/task:2", id="any-order"
    ),
    pytest.param(
        "@other/node", DeviceSpec(colocated_with="other/node"), "@other/node", id="of-a-node"
    ),
]


@pytest.mark.parametrize(("text", "spec", "canonical"), PARSED)
def test_parse_and_print(text: str, spec: DeviceSpec, canonical: str) -> None:
    found = DeviceSpec.from_string(text)
    assert found == spec
    assert found.to_string() == str(found) == canonical
    assert DeviceSpec.from_string(canonical) == spec


@pytest.mark.parametrize(
    "text",
    [
        *("/", "//cpu:0", "/job", "/job:", "/task:a", "/device", "/device:0", "/cpu:0/", "/cpu:-1"),
        *(
            "?",
            "nonsense",
            "/nonsense",
            "/job:a/nonsense",
            "/nonsense:0",
            "/job:a/nonsense:3/cpu:0",
        ),
        *("@", "@a b", "/@a", "@a:0", "/cpu:0@a"),
    ],
)
def test_garbage(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="is not a device name"):
        DeviceSpec.from_string(text)


def test_the_case_of_a_type_is_kept_and_makes_no_difference() -> None:
    spec = DeviceSpec(job="ps", replica=0, task=0, device_type="CPU", device_index=0)
    assert spec.to_string() == "/job:ps/replica:0/task:0/device:CPU:0"
    assert (spec.device_type, spec.kind) == ("CPU", "cpu")
    lower = DeviceSpec.from_string("/job:ps/replica:0/task:0/device:cpu:0")
    assert lower == spec
    assert hash(lower) == hash(spec)
    assert lower.is_compatible_with(spec)
    assert lower.merge_from(DeviceSpec(device_type="Gpu")).to_string().endswith("/device:Gpu:0")


@pytest.mark.parametrize(
    "parts",
    [
        *({"task": -1}, {"task": True}, {"replica": 1.5}, {"device_index": "0"}),
        *({"job": "a b"}, {"job": 1}, {"job": ""}, {"device_type": "cpu:0"}, {"device_type": ""}),
    ],
)
def test_what_is_no_part_of_a_name(parts: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="DeviceSpec: "):
        DeviceSpec(**parts)


def test_a_type_that_was_registered_needs_no_word_before_it() -> None:
    know_device_type("abacus")
    assert DeviceSpec.from_string("/job:a/abacus:1") == DeviceSpec("a", None, None, "abacus", 1)
    forget_device_type("abacus")
    with pytest.raises(InvalidArgumentError, match="is not a device name"):
        DeviceSpec.from_string("/job:a/abacus:1")


def test_a_part_given_twice() -> None:
    with pytest.raises(InvalidArgumentError, match="a part is given twice"):
        DeviceSpec.from_string("/job:a/job:b")


SPECS = st.builds(
    DeviceSpec,
    st.none() | st.sampled_from(["ps", "worker"]),
    st.none() | st.integers(0, 3),
    st.none() | st.integers(0, 3),
    st.none() | st.sampled_from(["cpu", "GPU"]),
    st.none() | st.integers(0, 3),
).filter(lambda s: s.device_type is not None or s.device_index is None)


@given(SPECS)
def test_round_trip(spec: DeviceSpec) -> None:
    assert DeviceSpec.from_string(spec.to_string()) == spec


@given(SPECS, SPECS)
def test_merging(a: DeviceSpec, b: DeviceSpec) -> None:
    merged = a.merge_from(b)
    for field in ("job", "replica", "task", "device_type", "device_index"):
        mine, theirs = getattr(a, field), getattr(b, field)
        assert getattr(merged, field) == (mine if theirs is None else theirs)
    assert a.merge_from(DeviceSpec()) == DeviceSpec().merge_from(a) == a
    assert b.is_compatible_with(merged)
    assert a.is_compatible_with(b) == b.is_compatible_with(a)


def test_compatibility() -> None:
    gpu = DeviceSpec(device_type="GPU", device_index=0)
    assert gpu.is_compatible_with(DeviceSpec("ps", 0, 0, "gpu", 0))
    assert not gpu.is_compatible_with(DeviceSpec(device_type="cpu"))


@pytest.mark.parametrize(
    "name", ["cpu:\u0663", "/task:\u0663", "/job:caf\u00e9", "/job:a\n", "cpu:0\n"]
)
def test_digits_and_letters_are_ascii(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="device"):
        DeviceSpec.from_string(name)


def test_a_node_and_a_device_have_nothing_to_add_to_each_other() -> None:
    node, device = DeviceSpec(colocated_with="a"), DeviceSpec("ps", device_type="cpu")
    assert node.merge_from(device) == device
    assert device.merge_from(node) == node
    assert node.merge_from(DeviceSpec()) == DeviceSpec().merge_from(node) == node
    with pytest.raises(InvalidArgumentError, match=r"placed with 'a' has no name besides.*/job:ps"):
        DeviceSpec("ps", colocated_with="a")


def test_specs_answer_to_the_names_of_older_programs() -> None:
    ps = DeviceSpec.parse_from_string("/job:ps/cpu:0")
    assert ps.make_merged_spec(DeviceSpec(task=2)).to_string() == "/job:ps/task:2/device:cpu:0"
    assert ps.to_string() == "/job:ps/device:cpu:0"
