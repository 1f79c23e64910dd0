"""The names of classes in files: Keras's own where it has the class, laminar's where it has not."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import applications, layers, ops, optimizers, registration, serialization
from laminar.engine.errors import NotFoundError
from laminar.export import Exported
from laminar.layers.op_layers import OpLayer, op_class
from laminar.ops.recording import recorded_ops
from laminar.optimizers.cosine_schedules import OneCycle
from laminar.saving import load_model
from laminar.utils import FeatureSpace

X = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
ROOMS = (applications, layers, optimizers, Exported, FeatureSpace)  # they list their classes


def listed() -> Iterator[tuple[str, type]]:
    """The classes that files can hold, each once, with the modules that files name."""
    found = {
        value: registration.listing_of(value)
        for module, namespace in registration._builtins.items()
        if ".ops" not in module
        for value in namespace.values()
        if isinstance(value, type) and hasattr(value, "get_config")
    }
    for kind, (module, name) in found.items():
        yield f"{getattr(kind, '_keras_module', None) or module}.{name}", kind


# Functions of the tables that are neither activations, losses nor metrics.
MERGING = {"add", "average", "concatenate", "dot", "maximum", "minimum", "multiply", "subtract"}
# What a function of each module takes before anything else.
FIRST = {
    "keras.activations": ["x"],
    "keras.losses": ["y_true", "y_pred"],
    "keras.metrics": ["y_true", "y_pred"],
}


def test_files_can_name_classes_ops_and_documented_functions_alone() -> None:
    checked = 0
    for module, table in registration._builtins.items():
        for name, value in table.items():
            checked += 1
            if isinstance(value, type):
                assert hasattr(value, "from_config"), (module, name)
                assert not issubclass(value, OpLayer) or value.function in recorded_ops, name
            elif module == "keras.layers":
                assert name in MERGING
            else:
                first = FIRST[module]
                assert list(inspect.signature(value).parameters)[: len(first)] == first, name
                assert value.__doc__, (module, name)
    assert checked > 2500  # eight tables have the ops


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("function", "list_builtins"),
        ("function", "deserialize"),
        ("function", "get"),
        ("function", "load"),
        ("SetRecorder", "f"),
        ("Public", "f"),
        ("CSVLogger", "f"),
        ("KerasTensor", "f"),
    ],
)
def test_a_config_cannot_reach_what_is_not_listed(kind: str, name: str) -> None:
    inner = name if kind == "function" else {"name": name}
    for module in (*registration._builtins, "keras.callbacks", "keras.export", "builtins"):
        config = {"module": module, "class_name": kind, "config": inner, "registered_name": None}
        with pytest.raises(NotFoundError, match=name if kind == "function" else kind):
            serialization.deserialize_keras_object(config)
    mask = {"module": "keras.layers", "class_name": "function", "config": "list_builtins"}
    function = {"module": "keras.activations", "class_name": "function", "config": "linear"}
    with pytest.raises(NotFoundError, match="list_builtins"):
        layers.Lambda.from_config({"name": "l", "function": function, "mask": mask})


def in_keras(path: str) -> bool:
    module, _, name = path.rpartition(".")
    try:
        return hasattr(importlib.import_module(module), name)
    except ImportError:
        return False


def test_what_has_a_name_of_keras_is_there() -> None:
    pytest.importorskip("keras")
    assert len(list(listed())) > 200
    paths = {path for path, _ in listed()}
    ours = {path for path in paths if path.startswith("laminar.")}
    assert ours == {"laminar.layers.CarriedMask", "laminar.optimizers.schedules.OneCycle"}
    assert {path for path in paths - ours if not in_keras(path)} == set()


def test_ops_are_where_keras_has_them() -> None:
    pytest.importorskip("keras")
    rooms = ("numpy", "nn", "core", "math", "linalg", "image", "einops")
    homes = {
        name: room
        for room in rooms
        for name, kind in vars(importlib.import_module(f"keras.src.ops.{room}")).items()
        if isinstance(kind, type) and kind.__module__ == f"keras.src.ops.{room}"
    }
    checked = 0
    for name in {*dir(ops), *dir(ops.image)}:
        fn = getattr(ops, name, None) or getattr(ops.image, name)
        if name.startswith("_") or not callable(fn) or isinstance(fn, type):
            continue
        kind = op_class(name)
        if kind.__name__ in homes:
            checked += 1
            expected = f"keras.src.ops.{homes[kind.__name__]}"
            assert kind._keras_module == expected, name
    assert checked > 250


def test_a_class_of_laminar_alone_says_so() -> None:
    config = serialization.serialize_keras_object(OneCycle(0.1, 20))
    assert config["module"] == "laminar.optimizers.schedules"
    assert config["registered_name"] == "laminar>OneCycle"
    again = serialization.deserialize_keras_object(config)
    assert isinstance(again, OneCycle)
    assert again.get_config() == OneCycle(0.1, 20).get_config()
    patches = op_class("extract_patches_3d")(size=2)
    config = serialization.serialize_keras_object(patches)
    assert (config["module"], config["registered_name"]) == (
        "laminar.ops",
        "laminar>ExtractPatches3d",
    )
    assert isinstance(serialization.deserialize_keras_object(config), OpLayer)


@pytest.mark.parametrize(
    ("module", "class_name", "config", "kind"),
    [
        (
            "keras.optimizers.schedules",
            "OneCycle",
            {"max_learning_rate": 0.1, "total_steps": 20},
            "OneCycle",
        ),
        ("keras.utils", "Cross", {"feature_names": ["a", "b"], "crossing_dim": 4}, "Cross"),
        ("keras.src.ops.core", "Maximum", {"name": "m"}, "Maximum"),
        ("keras.src.ops.numpy", "FFT", {"name": "f"}, "FFT"),
    ],
)
def test_files_of_before_are_read(
    module: str, class_name: str, config: dict[str, Any], kind: str
) -> None:
    old = {"module": module, "class_name": class_name, "config": config, "registered_name": None}
    assert type(serialization.deserialize_keras_object(old)).__name__ == kind


def model_with_a_schedule(schedule: Any) -> Any:
    x = layers.Input((3,))
    y = layers.Dense(2)(ops.where(ops.sort(x) > 0, ops.maximum(x, 0.5), x))
    model = laminar.Model(x, y)
    model.compile(optimizers.SGD(schedule), "mse")
    model.fit(X, X[:, :2], verbose=0)
    return model


def test_laminar_reads_its_own_schedule(tmp_path: Path) -> None:
    model = model_with_a_schedule(OneCycle(0.1, 20))
    model.save(tmp_path / "m.keras")
    again = load_model(tmp_path / "m.keras")
    assert again.optimizer.get_config() == model.optimizer.get_config()
    np.testing.assert_array_equal(again.predict(X, verbose=0), model.predict(X, verbose=0))


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_keras_says_what_it_does_not_know(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    config = serialization.serialize_keras_object(OneCycle(0.1, 20))
    with pytest.raises(TypeError, match="Could not locate class 'OneCycle'.*register"):
        keras.saving.deserialize_keras_object(config)
    model = model_with_a_schedule(0.1)
    model.save(tmp_path / "m.keras")
    theirs = keras.saving.load_model(tmp_path / "m.keras")
    np.testing.assert_allclose(
        np.asarray(theirs.predict(X, verbose=0)), model.predict(X, verbose=0), rtol=1e-6, atol=1e-7
    )


def test_tuples_are_kept_until_they_are_written() -> None:
    """JSON has lists alone; a config that is not written keeps its tuples, as Keras's does."""
    layer = layers.RandomTranslation((0.1, 0.2), 0.0)
    data = serialization.serialize_keras_object(layer)
    assert data["config"]["height_factor"] == (0.1, 0.2)
    assert serialization.deserialize_keras_object(data).get_config() == layer.get_config()
    nested = {"a": (1, [2, (3,)])}
    assert serialization.serialize_keras_object(nested) == nested
    assert serialization.deserialize_keras_object(nested) == nested


def test_a_config_finds_what_nobody_has_loaded() -> None:
    code = (
        "import laminar\n"
        "make = laminar.saving.deserialize_keras_object\n"
        "for name, module in (('Dense', 'keras.layers'), ('LayerScale', 'keras.src.applications"
        ".convnext')):\n"
        "    config = {'units': 2} if name == 'Dense' else {'init_values': 0.1, "
        "'projection_dim': 2}\n"
        "    print(type(make({'class_name': name, 'module': module, 'config': config})).__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["Dense", "LayerScale"], done.stderr


def test_names_of_a_module_of_its_own() -> None:
    """As packages that have registries of their own ask: keras-hub's samplers do."""
    find = serialization.deserialize_keras_object
    own = {"dense": layers.Flatten, "double": lambda x: 2 * x}
    assert isinstance(
        find("dense", module_objects=own, printable_module_name="part"), layers.Flatten
    )
    assert find("double", module_objects=own)(3) == 6
    assert find({"class_name": "dense", "config": {"name": "a"}}, module_objects=own).name == "a"
    assert find("dense", custom_objects={"dense": len}, module_objects=own) is len
    assert find("other", module_objects=own) == "other"
