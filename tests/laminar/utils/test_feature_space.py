"""FeatureSpace: tables as input of models, against the same by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers
from laminar.datasets import Dataset
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from laminar.utils import FeatureSpace

CHANCE = np.random.default_rng(0)
TABLE: dict[str, Any] = {
    "age": CHANCE.integers(20, 70, 40),
    "sex": CHANCE.integers(0, 2, 40),
    "thal": CHANCE.choice(["fixed", "normal", "reversible"], 40),
    "chol": CHANCE.normal(200, 40, 40),
}


def space(**options: Any) -> FeatureSpace:
    return FeatureSpace(
        {
            "age": FeatureSpace.float_discretized(num_bins=4),
            "sex": FeatureSpace.integer_categorical(num_oov_indices=0),
            "thal": "string_categorical",
            "chol": "float_normalized",
        },
        **options,
    )


def adapted(**options: Any) -> FeatureSpace:
    made = space(**options)
    made.adapt(TABLE)
    return made


def test_columns_are_prepared_and_joined_in_order() -> None:
    found = adapted()(TABLE).numpy()
    age = layers.Discretization(num_bins=4)
    age.adapt(TABLE["age"])
    thal = layers.StringLookup()
    thal.adapt(TABLE["thal"])
    sexes = sorted(set(TABLE["sex"]), key=lambda s: (-np.sum(TABLE["sex"] == s), -s))
    chol = (TABLE["chol"] - TABLE["chol"].mean()) / TABLE["chol"].std()
    expected = [
        np.eye(4)[age(TABLE["age"]).numpy()],
        np.eye(2)[[sexes.index(s) for s in TABLE["sex"]]],
        np.eye(4)[thal(TABLE["thal"]).numpy()],
        chol[:, None],
    ]
    assert np.allclose(found, np.concatenate(expected, axis=1), atol=1e-5)


def test_a_dict_of_columns() -> None:
    found = adapted(output_mode="dict")(TABLE)
    assert {key: tuple(x.shape) for key, x in found.items()} == {
        "age": (40, 4),
        "sex": (40, 2),
        "thal": (40, 4),
        "chol": (40, 1),
    }


def test_one_row() -> None:
    made = adapted()
    row = {key: column[3] for key, column in TABLE.items()}
    assert np.array_equal(made(row), made(TABLE)[3])


def test_crosses() -> None:
    made = adapted(crosses=[("sex", "thal"), FeatureSpace.cross(("age", "sex"), 8)], crossing_dim=5)
    parts = adapted(output_mode="dict", crosses=made.crosses)(TABLE)
    assert {key: x.shape[1] for key, x in parts.items() if "_X_" in key} == {
        "sex_X_thal": 5,
        "age_X_sex": 8,
    }
    crossed = parts["sex_X_thal"].numpy()
    assert (crossed.sum(axis=1) == 1).all()
    pairs: dict[tuple[int, str], int] = {}
    for sex, thal, place in zip(TABLE["sex"], TABLE["thal"], crossed.argmax(axis=1), strict=True):
        assert pairs.setdefault((sex, thal), place) == place
    assert np.array_equal(made(TABLE)[:, -13:-8], crossed)


def test_other_kinds_by_name_and_by_hand() -> None:
    made = FeatureSpace(
        {
            "chol": "float",
            "age": FeatureSpace.float_rescaled(scale=0.5, offset=1.0),
            "thal": FeatureSpace.string_hashed(num_bins=3),
            "sex": FeatureSpace.feature("int32", layers.Rescaling(2.0), "float"),
        }
    )
    found = made(TABLE).numpy()
    assert np.allclose(found[:, 0], TABLE["chol"])
    assert np.allclose(found[:, 1], TABLE["age"] * 0.5 + 1)
    assert (found[:, 2:5].sum(axis=1) == 1).all()
    assert np.allclose(found[:, 5], TABLE["sex"] * 2)
    boundaries = FeatureSpace({"age": FeatureSpace.float_discretized(None, [30.0, 50.0])})
    assert boundaries(TABLE).numpy().argmax(axis=1).tolist() == [
        int(age >= 30) + int(age >= 50) for age in TABLE["age"]
    ]


def test_learning_from_a_dataset() -> None:
    made = space()
    made.adapt(Dataset.from_tensor_slices(TABLE).batch(16))
    assert np.allclose(made(TABLE), adapted()(TABLE), atol=1e-5)


def test_in_a_model_that_takes_the_table() -> None:
    made = adapted(crosses=[("sex", "thal")])
    outputs = layers.Dense(1, activation="sigmoid")(made.get_encoded_features())
    model = laminar.Model(made.get_inputs(), outputs)
    model.compile("adam", "binary_crossentropy")
    history = model.fit(TABLE, TABLE["sex"], epochs=3, verbose=0).history["loss"]
    assert history[-1] < history[0]


def test_files(tmp_path: Path) -> None:
    made = adapted(crosses=[("sex", "thal")])
    made.save(tmp_path / "space.keras")
    again = laminar.saving.load_model(tmp_path / "space.keras")
    assert np.array_equal(again(TABLE), made(TABLE))
    model = laminar.Model(again.get_inputs(), layers.Dense(1)(again.get_encoded_features()))
    model.save(tmp_path / "model.keras")
    rows = {key: column[:5, None] for key, column in TABLE.items()}
    loaded = laminar.saving.load_model(tmp_path / "model.keras")
    assert np.array_equal(loaded.predict(rows, verbose=0), model.predict(rows, verbose=0))


def test_refused() -> None:
    made = space()
    with pytest.raises(FailedPreconditionError, match="have yet to learn from data"):
        made(TABLE)
    with pytest.raises(InvalidArgumentError, match="has no column 'age'"):
        made.adapt({"sex": [1]})
    with pytest.raises(InvalidArgumentError, match="expected a dict of columns, got a tuple"):
        made.adapt([(TABLE, TABLE["sex"])])
    with pytest.raises(InvalidArgumentError, match="names 'sax', which is no feature"):
        space(crosses=[("sax", "age")])
    with pytest.raises(InvalidArgumentError, match="output_mode must be 'concat' or 'dict'"):
        space(output_mode="list")
    with pytest.raises(InvalidArgumentError, match="one of float, float_rescaled"):
        FeatureSpace({"a": "floaty"})
    with pytest.raises(InvalidArgumentError, match="'a' gives numbers of categories"):
        FeatureSpace({"a": FeatureSpace.string_hashed(3, output_mode="int")})
    with pytest.raises(InvalidArgumentError, match="got none"):
        FeatureSpace({})


def test_bins_that_no_value_falls_into_have_columns_too() -> None:
    """Few values make few boundaries, but the width is what was asked for, as in Keras."""
    space = FeatureSpace({"x": "float_discretized"}, num_discretization_bins=32)
    space.adapt({"x": np.arange(10) / 10})
    assert space({"x": np.arange(3) / 10}).shape == (3, 32)
