"""MiniBatches: each example once an epoch, in a new order."""

from __future__ import annotations

import numpy as np
import pytest

from laminar.datasets import MiniBatches, digits, read_data_sets
from laminar.engine.errors import InvalidArgumentError, ShapeError


def test_an_epoch_gives_each_example_once_in_a_new_order() -> None:
    batches = MiniBatches(np.arange(6)[:, None], np.arange(6) * 10)
    epochs = []
    for epoch in range(3):
        parts = [batches.next_batch(2) for _ in range(3)]
        images = np.concatenate([x for x, _ in parts])[:, 0]
        np.testing.assert_array_equal(np.concatenate([y for _, y in parts]), images * 10)
        assert sorted(images) == list(range(6))
        assert batches.epochs_completed == epoch
        epochs.append(images.tolist())
    assert len({tuple(order) for order in epochs}) == 3


def test_a_batch_over_the_end_of_an_epoch_is_filled_from_the_next() -> None:
    batches = MiniBatches(np.arange(5), np.arange(5))
    found = np.concatenate([batches.next_batch(3)[0] for _ in range(5)])
    assert batches.epochs_completed == 2
    for epoch in range(3):
        assert sorted(found[5 * epoch : 5 * epoch + 5]) == list(range(5))


def test_orders_repeat_with_the_seed_and_need_not_be_random() -> None:
    x = np.arange(50)
    first, again, other = (MiniBatches(x, x, seed).next_batch(50)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    np.testing.assert_array_equal(MiniBatches(x, x).next_batch(4, shuffle=False)[0], x[:4])


def test_digits_as_rows_and_as_pictures() -> None:
    (x, y), (x_test, _) = digits.load_data()
    sets = read_data_sets(validation_size=100)
    images, labels = sets.train.next_batch(100)
    assert images.shape == (100, 64)
    assert images.dtype == labels.dtype == np.float32
    assert (labels.sum(axis=1) == 1).all()
    assert sets.validation is not None
    assert (sets.train.num_examples, sets.validation.num_examples) == (1337, 100)
    np.testing.assert_allclose(sets.validation.images, x[:100].reshape(100, 64) / 16)
    np.testing.assert_array_equal(sets.train.labels.argmax(axis=1), y[100:])
    pictures = read_data_sets(one_hot=False, reshape=False)
    assert pictures.validation is None
    assert pictures.test.images.shape == (360, 8, 8, 1)
    np.testing.assert_allclose(pictures.test.images[..., 0], x_test / 16)
    np.testing.assert_array_equal(pictures.train.labels, y)


def test_mistakes() -> None:
    batches = MiniBatches(np.arange(5), np.arange(5))
    with pytest.raises(InvalidArgumentError, match="batch_size must be from 1 to 5, got 6"):
        batches.next_batch(6)
    with pytest.raises(ShapeError, match="as many images as labels"):
        MiniBatches(np.arange(5), np.arange(4))
    with pytest.raises(InvalidArgumentError, match="source must be one of digits, mnist"):
        read_data_sets("letters")
    with pytest.raises(InvalidArgumentError, match="validation_size must be from 0 to 1436"):
        read_data_sets(validation_size=1437)
