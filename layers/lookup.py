"""StringLookup, IntegerLookup: strings and whole numbers, numbered by a vocabulary."""

from __future__ import annotations

from typing import Any

from laminar.engine.errors import DTypeError
from laminar.typing import Ints, TensorLike

from .index_lookup import IndexLookup


class StringLookup(IndexLookup):
    """The index of each string in a vocabulary, which is given or learned by `adapt`.

    Args:
        max_tokens: the most tokens of the vocabulary, with the special ones.
        num_oov_indices: how many indices there are for strings out of the vocabulary: with more
            than one a hash decides, that of `Hashing`; with none such a string is an error.
        mask_token: the string with index 0, or with no place in a vector; None for no such.
        oov_token: what `get_vocabulary`, and `invert`, give for strings out of the vocabulary.
        vocabulary: the tokens in order, or the path of a text file with a token on each line.
        idf_weights: for output mode "tf_idf", one for each token.
        invert: give the string of each index instead.
        output_mode: "int" for the index (int64); "one_hot", "multi_hot" or "count" (int64) as in
            CategoryEncoding; "tf_idf" for counts multiplied by the weights.
        pad_to_max_tokens: whether vectors have the length `max_tokens`, rather than that of the
            vocabulary.
        sparse: must be false.
        encoding: of the strings that `get_vocabulary` gives.
        salt: a whole number, or two, for the hash.

    Shapes:
        x: any, of strings -> y: the same; for other modes as in CategoryEncoding

    Examples:
        >>> layers.StringLookup(vocabulary=["cat", "dog"])([["dog", "cat", "fish"]])
        Tensor([[2, 1, 0]], shape=(1, 3), dtype=int64)
    """

    def __init__(
        self,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        mask_token: str | None = None,
        oov_token: str | None = "[UNK]",
        vocabulary: str | TensorLike | None = None,
        idf_weights: TensorLike | None = None,
        invert: bool = False,
        output_mode: str = "int",
        pad_to_max_tokens: bool = False,
        sparse: bool = False,
        encoding: str = "utf-8",
        name: str | None = None,
        salt: Ints | None = None,
        **kwargs: Any,
    ) -> None:
        self.encoding = encoding
        super().__init__(
            max_tokens=max_tokens,
            num_oov_indices=num_oov_indices,
            mask_token=mask_token,
            oov_token=oov_token,
            vocabulary_dtype="string",
            vocabulary=vocabulary,
            idf_weights=idf_weights,
            invert=invert,
            output_mode=output_mode,
            pad_to_max_tokens=pad_to_max_tokens,
            sparse=sparse,
            name=name,
            salt=salt,
            **kwargs,
        )

    def _readable(self, token: bytes) -> str:
        return token.decode(self.encoding, "surrogateescape")

    def get_config(self) -> dict[str, Any]:
        config = super().get_config() | {"encoding": self.encoding}
        del config["vocabulary_dtype"]  # there is but one
        return config


class IntegerLookup(IndexLookup):
    """The index of each whole number in a vocabulary, which is given or learned by `adapt`.

    Args:
        max_tokens: the most tokens of the vocabulary, with the special ones.
        num_oov_indices: how many indices there are for numbers out of the vocabulary: with more
            than one `oov_method` decides; with none such a number is an error.
        mask_token: the number with index 0, or with no place in a vector; None for no such.
        oov_token: what `get_vocabulary`, and `invert`, give for numbers out of the vocabulary.
        vocabulary: the tokens in order, or the path of a text file with a token on each line.
        vocabulary_dtype: must be "int64".
        idf_weights: for output mode "tf_idf", one for each token.
        invert: give the number of each index instead.
        output_mode: "int" for the index (int64); "one_hot", "multi_hot" or "count" (int64) as in
            CategoryEncoding; "tf_idf" for counts multiplied by the weights.
        sparse: must be false.
        pad_to_max_tokens: whether vectors have the length `max_tokens`, rather than that of the
            vocabulary.
        oov_method: "floormod" for the number modulo `num_oov_indices`; "farmhash" for the hash of
            `Hashing`, which is called so for Keras's sake.
        salt: a whole number, or two, for the hash.

    Shapes:
        x: any, of whole numbers -> y: the same; for other modes as in CategoryEncoding

    Examples:
        >>> layers.IntegerLookup(vocabulary=[10, 20])([20, 10, 99])
        Tensor([2, 1, 0], shape=(3,), dtype=int64)
    """

    def __init__(
        self,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        mask_token: int | None = None,
        oov_token: int | None = -1,
        vocabulary: str | TensorLike | None = None,
        vocabulary_dtype: str = "int64",
        idf_weights: TensorLike | None = None,
        invert: bool = False,
        output_mode: str = "int",
        sparse: bool = False,
        pad_to_max_tokens: bool = False,
        oov_method: str = "floormod",
        salt: Ints | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        if vocabulary_dtype != "int64":
            raise DTypeError(
                f"IntegerLookup: vocabulary_dtype must be int64, got {vocabulary_dtype}"
            )
        super().__init__(
            max_tokens=max_tokens,
            num_oov_indices=num_oov_indices,
            mask_token=mask_token,
            oov_token=oov_token,
            vocabulary_dtype=vocabulary_dtype,
            vocabulary=vocabulary,
            idf_weights=idf_weights,
            invert=invert,
            output_mode=output_mode,
            sparse=sparse,
            pad_to_max_tokens=pad_to_max_tokens,
            oov_method=oov_method,
            salt=salt,
            name=name,
            **kwargs,
        )
