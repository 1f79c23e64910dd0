"""A table with numbers, words and missing order, by FeatureSpace.

    python examples/tabular.py [--epochs 20]

Made customers: whether one leaves depends on age, contract, region and on how contract and region
go together. FeatureSpace learns what each column needs (mean and deviation, bins, vocabularies,
crosses) from the data, and goes into the model that is saved, so answers need no other code.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import laminar
from laminar import layers
from laminar.datasets import Dataset
from laminar.utils import FeatureSpace

CONTRACTS, REGIONS = ["monthly", "yearly", "none"], ["north", "south", "east", "west"]


def customers(count: int, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, count)
    contract, region = rng.choice(CONTRACTS, count), rng.choice(REGIONS, count)
    spent = rng.lognormal(3, 0.5, count).astype("float32")
    score = np.where(contract == "monthly", 1.5, -0.5) + np.where(age < 30, 1.2, 0)
    score += np.where((contract == "yearly") & (region == "south"), 2.5, 0) - spent / 30
    leaves = (score + rng.logistic(0, 0.4, count) > 0).astype("float32")
    table = {"age": age, "contract": contract, "region": region, "spent": spent}
    return table, leaves


def space() -> FeatureSpace:
    """What each column is."""
    return FeatureSpace(
        features={
            "age": FeatureSpace.float_discretized(num_bins=8),
            "contract": FeatureSpace.string_categorical(num_oov_indices=0),
            "region": FeatureSpace.string_categorical(num_oov_indices=0),
            "spent": FeatureSpace.float_normalized(),
        },
        crosses=[FeatureSpace.cross(("contract", "region"), crossing_dim=32)],
        output_mode="concat",
    )


def main(arguments: list[str] | None = None) -> float:
    """Gives the accuracy on new customers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args(arguments)
    laminar.set_random_seed(0)
    table, leaves = customers(2000, seed=0)
    features = space()
    features.adapt(Dataset.from_tensor_slices(table).batch(256))
    encoded = features.get_encoded_features()
    x = layers.Dense(32, activation="relu")(encoded)
    x = layers.Dropout(0.2)(x)
    answer = layers.Dense(1, activation="sigmoid")(x)
    learner = laminar.Model(encoded, answer)
    learner.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    rows = Dataset.from_tensor_slices((table, leaves)).batch(64)
    # The columns are encoded in the pipeline, beside the training of the batch before.
    prepared = rows.map(lambda columns, y: (features(columns), y)).cache().prefetch(2)
    learner.fit(prepared, epochs=options.epochs, verbose=2)

    # The model for use takes the columns as they are.
    model = laminar.Model(features.get_inputs(), answer)
    test, truth = customers(500, seed=1)
    columns: dict[str, Any] = {name: values[:, None] for name, values in test.items()}
    found = model.predict(columns, verbose=0)[:, 0]
    accuracy = float(np.mean((found > 0.5) == truth))
    print(f"right for {accuracy:.1%} of {len(truth)} new customers; {truth.mean():.1%} leave")
    return accuracy


if __name__ == "__main__":
    main()
