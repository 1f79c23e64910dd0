"""Types of devices whose code raises: whoever does without them is not stopped."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from laminar import engine as eng
from laminar.engine.devices import CpuDevice, list_devices, local_devices
from laminar.engine.devices.factories import factories
from laminar.engine.errors import InvalidArgumentError, NotFoundError
from laminar.engine.runtime import SessionConfig
from tests.engine.runtime.fake_gpu import registered


class Broken(CpuDevice):
    """A device of a third party's type."""

    device_type = "broken"


def lost(*_: Any) -> Any:
    raise RuntimeError("the driver is lost")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"make": lost}, "RuntimeError: the driver is lost"),
        ({"available": lost}, "RuntimeError: the driver is lost"),
        ({"make": lambda *_: None}, "make gave None, which is no Device"),
    ],
    ids=["make", "available", "no-device"],
)
def test_a_type_whose_devices_cannot_be_made_stops_only_who_asks_for_it(
    options: dict[str, Any], why: str
) -> None:
    with registered("broken", lambda index, count, limit: Broken(index), priority=50):
        factories["broken"] = dataclasses.replace(factories["broken"], **options)
        found = list_devices()
        assert found.missing["broken"].startswith("the type 'broken' cannot make its devices")
        assert why in found.missing["broken"]
        assert "cpu" in {d.device_type for d in found}
        with eng.Graph().as_default(), eng.Session() as session:
            assert session.run(eng.constant(2.0) * 3.0) == 6.0
        assert eng.function(lambda x: x * 2.0)(eng.constant(4.0)).numpy() == 8.0
        with pytest.raises(NotFoundError, match="(?s)broken.*cannot make its devices"):
            local_devices().named("/device:broken:0")
        with pytest.raises(InvalidArgumentError, match="(?s)broken.*is 1.*cannot make its devices"):
            eng.Session(graph=eng.Graph(), config=SessionConfig(device_count={"broken": 1}))
        assert "broken" not in local_devices({"broken": 0}).missing
