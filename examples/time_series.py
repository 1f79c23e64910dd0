"""Forecasts of a time series, with how sure they are: a network that gives three quantiles.

    python examples/time_series.py [--epochs 8] [--data FILE.csv]

A made series of hourly demand (a day, a week, a trend, noise that grows with it) is read in windows
of a week; the next day is forecast. A causal convolution over time sees nothing that comes later.
`--data` takes a CSV file, of which the last column is forecast.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import laminar
from laminar import layers, ops
from laminar.utils import timeseries_dataset_from_array

PAST, AHEAD = 168, 24
QUANTILES = (0.1, 0.5, 0.9)


def demand(hours: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    day, week = np.sin(2 * np.pi * t / 24), np.cos(2 * np.pi * t / 168)
    level = 10 + 3 * day + 1.5 * week + t / 2000
    return (level + rng.normal(0, 0.05, hours) * level).astype("float32")


def quantile_loss(truth: Any, forecast: Any) -> Any:
    """max(q e, (q - 1) e) of each error e = truth - forecast: least at the q-quantile.

    Source: Koenker and Bassett, "Regression quantiles", Econometrica 46 (1978).
    """
    error = ops.expand_dims(truth, -1) - forecast
    q = np.array(QUANTILES, "float32")
    return ops.mean(ops.maximum(q * error, (q - 1) * error), axis=(1, 2))


def build() -> laminar.Model:
    """Convolutions of two hours whose gaps double: the last place sees the whole window."""
    past = layers.Input((PAST, 1))
    x = past
    for gap in (1, 2, 4, 8, 16, 32, 64):
        y = layers.Conv1D(24, 2, padding="causal", dilation_rate=gap, activation="relu")(x)
        x = layers.Add()([y, layers.Conv1D(24, 1)(x)])
    forecast = layers.Dense(AHEAD * len(QUANTILES))(x[:, -1])
    return laminar.Model(past, layers.Reshape((AHEAD, len(QUANTILES)))(forecast), name="demand")


def main(arguments: list[str] | None = None) -> tuple[float, float, float]:
    """Gives the mean absolute error, that of last week's values, and the share within the band."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--data", type=Path, default=None)
    options = parser.parse_args(arguments)
    laminar.set_random_seed(0)
    if options.data is None:
        series = demand(24 * 7 * 30)
    else:
        table = np.genfromtxt(options.data, delimiter=",", dtype="float32")
        series = table if table.ndim == 1 else table[:, -1]
        series = series[np.isfinite(series)]
    known = len(series) * 4 // 5  # what comes later is for testing
    mean, deviation = series[:known].mean(), series[:known].std()
    scaled = (series - mean) / deviation
    rows = np.arange(len(scaled) - PAST - AHEAD + 1)
    targets = scaled[PAST + rows[:, None] + np.arange(AHEAD)]
    train = timeseries_dataset_from_array(
        scaled[: known - AHEAD, None], targets[: known - PAST - AHEAD], PAST, batch_size=64
    )
    model = build()
    model.compile(laminar.optimizers.Adam(2e-3), quantile_loss)
    model.fit(train, epochs=options.epochs, verbose=2)

    later = np.arange(known, len(series) - AHEAD + 1, AHEAD)
    x = scaled[later[:, None] - PAST + np.arange(PAST)][..., None]
    truth = series[later[:, None] + np.arange(AHEAD)]
    low, middle, high = np.moveaxis(model.predict(x, verbose=0) * deviation + mean, -1, 0)
    error = float(np.abs(middle - truth).mean())
    naive = float(np.abs(series[later[:, None] - 168 + np.arange(AHEAD)] - truth).mean())
    within = float(np.mean((low <= truth) & (truth <= high)))
    print(
        f"mean error {error:.3f}, of last week's values {naive:.3f}; {within:.0%} in the 80 % band"
    )
    return error, naive, within


if __name__ == "__main__":
    main()
