"""Hostile model files: `write_corpus(folder)` writes the same ones each time."""

from __future__ import annotations

import copy
import json
import random
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py  # type: ignore[import-untyped]  # it has no type hints
import numpy as np

import laminar
from laminar import layers

HUGE = 10**12
SECRET = "outside.txt"  # a file that no model file may make us read
Config = dict[str, Any]


def good_model() -> Any:
    """A small model with several kinds of layers."""
    laminar.set_random_seed(0)
    image = layers.Input((6, 6, 2), name="image")
    x = layers.Conv2D(3, 3, activation="relu", name="conv")(image)
    x = layers.BatchNormalization(name="norm")(x)
    x = layers.Flatten(name="flat")(laminar.ops.relu(x) + 1.0)
    model = laminar.Model(image, layers.Dense(2, name="head")(x))
    model.compile("adam", "mse")
    model.optimizer.build(model.trainable_variables)
    return model


# The corpus


def write_corpus(folder: Path) -> list[Path]:
    """Write all hostile files, and two good ones (`good.keras`, `good.h5`)."""
    model = good_model()
    (folder / SECRET).write_text("secret\n")
    model.save(folder / "good.keras")
    model.save(folder / "good.h5")
    model.save_weights(folder / "good.weights.h5")
    files = []
    for name, change in {**CONFIGS, **layer_configs(folder)}.items():
        files += [_with_config(folder, f"config-{name}", change)]
        files += [_legacy_with_config(folder, f"config-{name}", change)]
    for name, text in TEXTS.items():
        files += [_with_text(folder, f"text-{name}", text)]
    for name, rewrite in ARCHIVES.items():
        files += [_archive(folder, f"zip-{name}", rewrite)]
    for name, build in TREES.items():
        files += [_hdf5(folder, f"hdf5-{name}", build, ending) for ending in (".h5", ".weights.h5")]
        files += [_archived(folder, files[-1])]
    for suffix in (".keras", ".h5", ".weights.h5"):
        whole = (folder / f"good{suffix}").read_bytes()
        for share in (0.0, 0.01, 0.3, 0.9, 0.999):
            path = folder / f"cut-{share}{suffix}"
            path.write_bytes(whole[: int(share * len(whole))])
            files.append(path)
        path = folder / f"noise{suffix}"
        path.write_bytes(random.Random(1).randbytes(3000))
        files.append(path)
    return files


def _layer(config: Config, name: str) -> Config:
    found: Config = next(e for e in config["config"]["layers"] if e["name"] == name)
    return found


def _set(layer: str, /, **values: Any) -> Callable[[Config], None]:
    """Change arguments of a layer."""
    return lambda config: _layer(config, layer)["config"].update(values)


def _be(module: Any, class_name: Any, config: Any, **rest: Any) -> Callable[[Config], None]:
    """Make a layer something else."""
    entry = {"module": module, "class_name": class_name, "config": config}
    return lambda model: _layer(model, "flat").update({"registered_name": None, **entry, **rest})


CODE = {  # of `lambda: __import__("os").system("touch ran")`, or what looks like it
    "class_name": "__lambda__",
    "config": {"code": "4wAAAAAAAAAAAAAAAAIAAABDAAAA", "defaults": None, "closure": None},
}
_DEEP: Any = []
for _ in range(150):
    _DEEP = [_DEEP]

CONFIGS: dict[str, Callable[[Config], object]] = {
    "class-of-os": _be("os", "system", {"command": "touch ran"}),
    "class-of-builtins": _be("builtins", "eval", {"source": "1"}),
    "class-of-subprocess": _be("subprocess", "Popen", {"args": ["touch", "ran"]}),
    "private-class": _be("laminar.saving.whole", "_Upgrade", {}),
    "function-of-os": _set(
        "head",
        activation={
            "module": "os",
            "class_name": "function",
            "config": "system",
            "registered_name": "system",
        },
    ),
    "function-of-builtins": _set(
        "head",
        kernel_initializer={
            "module": "builtins",
            "class_name": "function",
            "config": "exec",
            "registered_name": "exec",
        },
    ),
    "unsafe-switch": _be(
        "keras.config", "function", "enable_unsafe_deserialization", registered_name="x"
    ),
    "lambda-layer": _be("keras.layers", "Lambda", {"name": "flat", "function": CODE}),
    "lambda-activation": _set("head", activation=CODE),
    "lambda-of-keras-2": _be(
        "keras.layers",
        "Lambda",
        {"name": "flat", "function": ["4wAAAAAA", None, None], "function_type": "lambda"},
    ),
    "torch-module": _be("keras.layers", "TorchModuleWrapper", {"name": "flat", "module": "gASV"}),
    "saved-model": _be("keras.layers", "TFSMLayer", {"name": "flat", "filepath": "/etc"}),
    "special": _be(None, "__import__", {"value": "os"}),
    "dunder": _be("keras.layers", "__class__", {}),
    "huge-dense": _set("head", units=HUGE),
    "huge-convolution": _set("conv", filters=HUGE),
    "huge-kernel": _set("conv", kernel_size=[HUGE, HUGE]),
    "huge-input": _set("image", batch_shape=[None, HUGE, HUGE, HUGE]),
    "negative-input": _set("image", batch_shape=[None, -6, 6, 2]),
    "float-input": _set("image", batch_shape=[None, 1.5, 6, 2]),
    "text-input": _set("image", batch_shape="abc"),
    "many-axes": _set("image", batch_shape=[None, *[2] * 500]),
    "no-units": _set("head", units=None),
    "deep-units": _set("head", units=_DEEP),
    "name-with-slash": _set("head", name="../../x"),
    "unknown-argument": _set("head", nonsense=1),
    "dtype": _set("head", dtype="object"),
    "layers-are-text": lambda c: c["config"].update(layers="abc"),
    "layers-are-numbers": lambda c: c["config"].update(layers=[1, 2]),
    "no-layers": lambda c: c["config"].update(layers=[]),
    "same-layer-twice": lambda c: c["config"]["layers"].append(
        copy.deepcopy(c["config"]["layers"][1])
    ),
    "a-layer-of-itself": lambda c: _layer(c, "head").update(
        inbound_nodes=[{"args": [_tensor("head")], "kwargs": {}}]
    ),
    "a-ring": lambda c: [
        _layer(c, a).update(inbound_nodes=[{"args": [_tensor(b)], "kwargs": {}}])
        for a, b in (("flat", "head"), ("head", "flat"))
    ],
    "a-call-of-nothing": lambda c: _layer(c, "head").update(
        inbound_nodes=[{"args": [1.0], "kwargs": {}}]
    ),
    "place-that-is-none": lambda c: c["config"].update(output_layers=["head", HUGE, -3]),
    "place-of-nothing": lambda c: c["config"].update(output_layers=[["nobody", 0, 0]]),
    "places-nest": lambda c: c["config"].update(output_layers=_DEEP),
    "op-makes-an-array": lambda c: c["config"]["layers"].append(
        {
            "module": "keras.src.ops.numpy",
            "class_name": "Zeros",
            "config": {"name": "zeros"},
            "registered_name": None,
            "name": "zeros",
            "inbound_nodes": [{"args": [[HUGE]], "kwargs": {}}],
        }
    ),
    "model-in-itself": lambda c: c["config"]["layers"].append(
        {**_nested(c, 60), "name": "inner", "inbound_nodes": []}
    ),
    "optimizer-of-os": lambda c: c.update(
        compile_config={"optimizer": {"module": "os", "class_name": "_exit", "config": {}}}
    ),
    "loss-is-code": lambda c: c.update(compile_config={"optimizer": "adam", "loss": CODE}),
    "huge-array": _set(
        "head",
        bias_initializer={
            "module": "keras.initializers",
            "class_name": "Constant",
            "config": {
                "value": {"class_name": "__numpy__", "config": {"value": _DEEP, "dtype": "f4"}}
            },
        },
    ),
    "slice": _set("head", units={"class_name": "__slice__", "config": {}}),
}


def layer_configs(folder: Path) -> dict[str, Callable[[Config], None]]:
    """Layers that could be made to open files."""
    path = str(folder / SECRET)
    return {
        f"{kind}-of-a-file": _be(
            "keras.layers", kind, {"name": "flat", "vocabulary": path, "trainable": True}
        )
        for kind in ("StringLookup", "IntegerLookup", "TextVectorization")
    }


def _tensor(name: str) -> Config:
    history = {"shape": [None, 2], "dtype": "float32", "keras_history": [name, 0, 0]}
    return {"class_name": "__keras_tensor__", "config": history}


def _nested(config: Config, depth: int) -> Config:
    """A Sequential in a Sequential in ..."""
    found = {"module": "keras.layers", "class_name": "Flatten", "config": {"name": "f"}}
    for i in range(depth):
        inner = {"name": f"s{i}", "layers": [found]}
        found = {"module": "keras", "class_name": "Sequential", "config": inner}
    return found


def _number(text: str) -> Callable[[str], str]:
    return lambda config: config.replace('"units": 2', f'"units": {text}')


TEXTS: dict[str, Callable[[str], str]] = {
    "deep": lambda _: "[" * 100_000 + "]" * 100_000,
    "deep-objects": lambda _: '{"a":' * 100_000 + "1" + "}" * 100_000,
    "nan": _number("NaN"),
    "infinity": _number("1e999"),
    "digits": _number("9" * 5000),
    "two-keys": lambda text: text.replace('"units": 2', '"units": 2, "units": 3'),
    "not-json": lambda text: text[:-1],
    "a-list": lambda _: "[1]",
    "a-number": lambda _: "3",
    "surrogate": lambda text: text.replace('"head"', '"\\ud800"'),
    "nul": lambda text: text.replace('"head"', '"\\u0000"'),
}


def entries_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _zip(path: Path, entries: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return path


def _with_config(folder: Path, name: str, change: Callable[[Config], Any]) -> Path:
    entries = entries_of(folder / "good.keras")
    config = json.loads(entries["config.json"])
    change(config)
    return _zip(folder / f"{name}.keras", {**entries, "config.json": json.dumps(config).encode()})


def _legacy_with_config(folder: Path, name: str, change: Callable[[Config], Any]) -> Path:
    path = folder / f"{name}.h5"
    path.write_bytes((folder / "good.h5").read_bytes())
    with h5py.File(path, "a", libver="earliest") as file:
        config = json.loads(file.attrs["model_config"])
        change(config)
        del file.attrs["model_config"]
        file.attrs["model_config"] = json.dumps(config)
        if "compile_config" in config:
            training = {"optimizer_config": config["compile_config"].get("optimizer")}
            training |= {k: v for k, v in config["compile_config"].items() if k != "optimizer"}
            file.attrs["training_config"] = json.dumps(training)
    return path


def _with_text(folder: Path, name: str, change: Callable[[str], str]) -> Path:
    entries = entries_of(folder / "good.keras")
    text = change(entries["config.json"].decode())
    return _zip(folder / f"{name}.keras", {**entries, "config.json": text.encode("utf-8")})


def _extra(name: str, content: bytes = b"x", mode: int = 0) -> Callable[[Any], None]:
    def add(archive: zipfile.ZipFile) -> None:
        entry = zipfile.ZipInfo(name)
        entry.external_attr = mode << 16
        archive.writestr(entry, content)

    return add


def _bomb(name: str) -> Callable[[Any], None]:
    def add(archive: zipfile.ZipFile) -> None:
        archive.writestr(zipfile.ZipInfo(name), bytes(50 << 20), zipfile.ZIP_DEFLATED)

    return add


ARCHIVES: dict[str, Callable[[Any], object]] = {
    "traversal": _extra("../../outside.txt"),
    "traversal-in-assets": _extra("assets/../../outside.txt"),
    "absolute": _extra("/etc/passwd"),
    "backslash": _extra("assets\\..\\x"),
    "drive": _extra("C:x"),
    "link": _extra("assets/link", b"/etc/passwd", stat.S_IFLNK | 0o777),
    "device": _extra("assets/device", b"", stat.S_IFCHR | 0o666),
    "bomb": _bomb("assets/bomb"),
    "empty-name": _extra("assets//x"),
    "many": lambda archive: [archive.writestr(f"assets/{i}", b"") for i in range(10_001)],
}


def _archive(folder: Path, name: str, add: Callable[[Any], object]) -> Path:
    path = folder / f"{name}.keras"
    path.write_bytes((folder / "good.keras").read_bytes())
    with zipfile.ZipFile(path, "a") as archive:
        add(archive)
    return path


def _shape_bomb(file: Any) -> None:
    file.create_dataset("layers/dense/vars/0", (HUGE,), "f4", chunks=(1 << 20,), fillvalue=0)


def _chunk_bomb(file: Any) -> None:
    shape = (1 << 28,)
    file.create_dataset("layers/dense/vars/0", shape, "f4", chunks=shape, compression="gzip")


def _ring(file: Any) -> None:
    group = file.create_group("layers/dense/vars")
    group["again"] = file["layers"]


def _virtual(file: Any) -> None:
    layout = h5py.VirtualLayout((4,), "f4")
    layout[:] = h5py.VirtualSource("/etc/passwd", "x", (4,))
    file.create_virtual_dataset("layers/dense/vars/0", layout)


def _lists_elsewhere(file: Any) -> None:
    file.attrs["layer_names"] = np.array([b"../../x", b"/etc", b"a/b"])
    file.create_group("a/b").attrs["weight_names"] = np.array([b"../../outside.txt"])


TREES: dict[str, Callable[[Any], object]] = {
    "external-link": lambda f: f.create_group("layers").__setitem__(
        "dense", h5py.ExternalLink(SECRET, "/")
    ),
    "soft-link": lambda f: f.create_group("layers").__setitem__("dense", h5py.SoftLink("/")),
    "external-data": lambda f: f.create_dataset(
        "layers/dense/vars/0", (4,), "f4", external=[(SECRET, 0, 16)]
    ),
    "virtual": _virtual,
    "ring": _ring,
    "shape-bomb": _shape_bomb,
    "chunk-bomb": _chunk_bomb,
    "reference": lambda f: f.create_dataset("x", (2,), h5py.ref_dtype),
    "compound": lambda f: f.create_dataset("x", (2,), np.dtype([("a", "f4"), ("b", "i4")])),
    "deep": lambda f: f.create_group("/".join("a" * 400)),
    "lists-elsewhere": _lists_elsewhere,
    "config-is-a-number": lambda f: f.attrs.__setitem__("model_config", 3),
    "empty": lambda f: None,
}


def _hdf5(folder: Path, name: str, build: Callable[[Any], object], ending: str) -> Path:
    path = folder / f"{name}{ending}"
    with h5py.File(path, "w", libver="earliest") as file:
        build(file)
    return path


def _archived(folder: Path, weights: Path) -> Path:
    entries = {**entries_of(folder / "good.keras"), "model.weights.h5": weights.read_bytes()}
    return _zip(folder / f"{weights.name.removesuffix('.weights.h5')}.keras", entries)
