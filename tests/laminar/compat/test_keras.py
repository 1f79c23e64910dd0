"""Programs and packages that import Keras get laminar."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import laminar
import laminar.compat.keras as keras

# A package as KerasTuner and keras-hub are: public names, private paths, a star.
PACKAGE = {
    "tuner/__init__.py": "from tuner.backend import keras\nfrom tuner.search import best\n",
    "tuner/backend.py": """
import keras as _keras
assert _keras.version().startswith("3.") and _keras.__version__ == _keras.version()
from tuner import names as keras
""",
    "tuner/names.py": "from keras import *\n",
    "tuner/search.py": """
import keras.utils
from keras.src import ops
from keras.src.backend import get_keras_mask
from keras.src.layers.core.dense import Dense
from keras.src.losses.losses import LossFunctionWrapper
from keras.src.saving import serialization_lib
from tuner.backend import keras as names


@keras.saving.register_keras_serializable("tuner")
class Scaled(keras.layers.Layer):
    def __init__(self, factor=2.0, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def call(self, x):
        return ops.multiply(x, self.factor)


def best(x, y):
    model = names.Sequential([Scaled(), Dense(1)])
    model.compile(keras.optimizers.Adam(0.1), "mse", metrics=["mae"])
    model.fit(x, y, verbose=0)
    assert get_keras_mask(x) is None
    config = serialization_lib.serialize_keras_object(model.layers[0])
    assert serialization_lib.deserialize_keras_object(config).factor == 2.0
    written = keras.utils.legacy.serialize_keras_object(model.layers[0])
    assert written["class_name"] == "tuner>Scaled"
    return model
""",
}

PROGRAM = """
import sys
import laminar
import laminar.compat.keras
laminar.compat.keras.install()
laminar.compat.keras.install()
import numpy as np
import tuner
from keras.layers import Dense
assert Dense is laminar.layers.Dense and tuner.keras.Model is laminar.Model
x = np.ones((4, 3), "float32")
assert isinstance(tuner.best(x, x[:, :1]), laminar.Sequential)
import keras.ops
import keras
assert keras.ops.add is laminar.ops.add
try:
    import keras.nothing
except ModuleNotFoundError:
    pass
try:
    keras.layers.Nothing
except AttributeError as error:
    assert "'keras.layers' has no attribute 'Nothing'" in str(error), error
from keras.src.utils import nothing
try:
    nothing()
except AttributeError as error:
    assert "keras.src.utils.nothing" in str(error), error
laminar.compat.keras.uninstall()
assert not [name for name in sys.modules if name.partition(".")[0] == "keras"]
"""


@pytest.mark.slow
def test_packages_that_import_keras(tmp_path: Path) -> None:
    for name, text in PACKAGE.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (tmp_path / "main.py").write_text(PROGRAM)
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-W", "error", "main.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_keras_that_is_loaded_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keras", laminar)
    with pytest.raises(laminar.errors.FailedPreconditionError, match="imported already"):
        keras.install()


def test_names_of_the_module() -> None:
    assert keras.layers is laminar.layers
    assert keras.Sequential is laminar.Sequential
    assert keras.__version__ == keras.version() == "3.15.1"
    assert {"Model", "layers", "ops", "version"} <= set(dir(keras))
