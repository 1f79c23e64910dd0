"""Fingerprints, compared with those of TensorFlow 2.21."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import DTypeError, InvalidArgumentError
from laminar.engine.functions import function
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.text.farmhash import fingerprint, fingerprint_bucket, fingerprint_cat

# Of each length, which take different ways: tf.strings.to_hash_bucket_fast(text, 2**63 - 1).
KNOWN = [
    (0, 1936946117179621456),
    (1, 4521786392703311244),
    (3, 4662423180930907492),
    (4, 8342898540396837779),
    (7, 5759834791111993764),
    (8, 907454142650066470),
    (16, 9140634717936656744),
    (17, 5283162056940282152),
    (32, 2684005117763720425),
    (33, 4778210889463820522),
    (64, 389040666157116578),
    (65, 8638051931306504420),
    (128, 7379187116787024497),
    (129, 1738507677182238852),
    (200, 7886090686657605591),
]
TEXTS: Any = np.array([bytes((i * 7 + 3) % 256 for i in range(n)) for n, _ in KNOWN], object)


def test_fingerprints() -> None:
    found = fingerprint_bucket(fingerprint(convert_to_tensor(TEXTS)), 2**63 - 1)
    assert found.numpy().tolist() == [value for _, value in KNOWN]
    again = function(lambda x: fingerprint_bucket(fingerprint(x), 1000))(TEXTS.reshape(3, 5))
    bits = fingerprint(convert_to_tensor(TEXTS)).numpy().view(np.uint64)
    assert again.numpy().ravel().tolist() == (bits % np.uint64(1000)).tolist()


def test_two_fingerprints_make_one() -> None:
    """tf.sparse.cross_hashed of ("a", 1, "x" * 40) in 1000003 buckets."""
    crossed = convert_to_tensor(0xDECAFCAFFE, "int64")
    for part in (fingerprint(convert_to_tensor("a")), convert_to_tensor(1, "int64")):
        crossed = fingerprint_cat(crossed, part)
    crossed = fingerprint_cat(crossed, fingerprint(convert_to_tensor("x" * 40)))
    assert fingerprint_bucket(crossed, 1000003).numpy() == 183890
    rows = fingerprint_cat(convert_to_tensor([[1], [2]], "int64"), convert_to_tensor([3], "int64"))
    assert rows.shape == (2, 1)


def test_mistakes() -> None:
    with pytest.raises(InvalidArgumentError, match="num_buckets must be at least 1"):
        fingerprint_bucket(convert_to_tensor([1], "int64"), 0)
    with pytest.raises(DTypeError):
        fingerprint(convert_to_tensor([1.0]))
