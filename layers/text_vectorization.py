"""TextVectorization: texts as rows of token indices, or as vectors of counts."""

from __future__ import annotations

import re
import string as characters
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, Self

import numpy as np

from laminar import ops
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import STRING, TensorSpec, as_dtype
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.core.host import host_function
from laminar.engine.ops.text import string
from laminar.engine.ops.text.string_match import regex_replace
from laminar.engine.ops.text.tokens import string_characters, string_ngrams
from laminar.naming import who
from laminar.serialization import deserialize_keras_object
from laminar.typing import DataLike, TensorLike

from .category_encoding import MODES
from .data_layer import DataLayer, as_array, batches
from .lookup import StringLookup
from .operation import infer_outputs
from .options import one_of, whole
from .vocabulary_files import refuse_path

_STANDARDS = ("lower_and_strip_punctuation", "lower", "strip_punctuation")
_SPLITS = ("whitespace", "character")
_PUNCTUATION = f"[{re.escape(characters.punctuation)}]"
_AT_ONCE = 1024  # texts that adapt() splits at a time: their rows are as long as the longest


class TextVectorization(DataLayer):
    """Texts as token indices: standardized, split, joined to n-grams, looked up in a vocabulary.

    The vocabulary is given, or learned by `adapt`. Index 0 is that of the padding, and of the empty
    token; 1 is that of tokens out of the vocabulary.

    Args:
        max_tokens: the most tokens of the vocabulary, with the special ones.
        standardize: "lower_and_strip_punctuation", "lower", "strip_punctuation" (both for ASCII
            alone), None, or a function of a NumPy array of str that gives one of the same shape.
        split: "whitespace", "character", None for texts that are tokens already, or a function of a
            NumPy array of str that gives a list of tokens for each text.
        ngrams: tokens are also joined in twos, threes, ... up to so many; or a tuple of how many
            tokens are joined.
        output_mode: "int" for indices (int64); "multi_hot" or "count" (int64) for a vector for each
            text; "tf_idf" for counts multiplied by weights.
        output_sequence_length: for "int", rows are cut or filled with zeros to this length; by
            default they are as long as the longest of the batch.
        pad_to_max_tokens: whether vectors have the length `max_tokens`, rather than that of the
            vocabulary.
        vocabulary: the tokens in order, or the path of a text file with a token on each line.
        idf_weights: for output mode "tf_idf", one for each token.
        sparse: must be false.
        ragged: must be false.
        encoding: of the strings that `get_vocabulary` gives.

    Shapes:
        x: (batch,) or (batch, 1), of strings -> y: (batch, tokens) or (batch, vocabulary size)

    Examples:
        >>> layer = layers.TextVectorization(vocabulary=["the", "cat", "sat"])
        >>> layer(["The cat sat.", "A cat"])
        Tensor([[2, 3, 4],
                [1, 3, 0]], shape=(2, 3), dtype=int64)
    """

    def __init__(
        self,
        max_tokens: int | None = None,
        standardize: str | Callable[..., Any] | None = "lower_and_strip_punctuation",
        split: str | Callable[..., Any] | None = "whitespace",
        ngrams: int | Sequence[int] | None = None,
        output_mode: str = "int",
        output_sequence_length: int | None = None,
        pad_to_max_tokens: bool = False,
        vocabulary: str | TensorLike | None = None,
        idf_weights: TensorLike | None = None,
        sparse: bool = False,
        ragged: bool = False,
        encoding: str = "utf-8",
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        options = {
            k: kwargs.pop(k) for k in ("has_input_vocabulary", "vocabulary_size") & kwargs.keys()
        }
        super().__init__(name=name, **kwargs)
        for what, value, known in (
            ("standardize", standardize, _STANDARDS),
            ("split", split, _SPLITS),
        ):
            if value is not None and not callable(value):
                one_of(self, what, value, known)
        if ragged:
            raise InvalidArgumentError(
                f"{who(self)}: ragged must be false, there are dense tensors only",
                remedy="leave it out",
            )
        mode = {"binary": "multi_hot", "tf-idf": "tf_idf"}.get(output_mode, output_mode)
        self._output_mode = one_of(self, "output_mode", mode, ("int", *MODES, "tf_idf"))
        self._standardize, self._split = standardize, split
        self._ngrams_argument = ngrams
        self._widths = self._checked_ngrams(ngrams)
        self._length = output_sequence_length
        if output_sequence_length is not None:
            whole(self, "output_sequence_length", output_sequence_length, 0)
            if self._output_mode != "int":
                raise InvalidArgumentError(
                    f"{who(self)}: output_sequence_length is for output_mode 'int', "
                    f"got {output_mode!r}"
                )
        self._encoding = encoding
        self._lookup_layer = StringLookup(
            max_tokens=max_tokens,
            vocabulary=vocabulary,
            idf_weights=idf_weights,
            pad_to_max_tokens=pad_to_max_tokens,
            mask_token="",
            output_mode=self._output_mode,
            sparse=sparse,
            encoding=encoding,
            **options,
        )

    def _checked_ngrams(self, ngrams: Any) -> tuple[int, ...] | None:
        if ngrams is None:
            return None
        if isinstance(ngrams, Sequence) and not isinstance(ngrams, str):
            return tuple(whole(self, "ngrams", n) for n in ngrams)
        return tuple(range(1, whole(self, "ngrams", ngrams) + 1))

    @property
    def compute_dtype(self) -> str:
        """The dtype of the texts."""
        return "string"

    @property
    def variable_dtype(self) -> str:
        """The dtype of the texts."""
        return "string"

    # The vocabulary

    def adapt(
        self, data: DataLike, batch_size: int | None = None, steps: int | None = None
    ) -> None:
        """Learn the vocabulary of texts; see `StringLookup.adapt`.

        Args:
            data: an array or a list of texts, or an iterable of batches.
            batch_size: takes no part: `data` in memory is one pass.
            steps: at most so many batches.
        """
        self.reset_state()
        if hasattr(data, "__array__") or isinstance(data, list | tuple | str | bytes):
            texts = as_array(data)
            texts = texts[:, None] if texts.ndim == 1 else texts
            for first in range(0, len(texts) if texts.ndim else 1, _AT_ONCE):
                self.update_state(texts[first : first + _AT_ONCE] if texts.ndim else texts)
        else:
            for batch in batches(data, steps):
                self.update_state(batch)
        self.finalize_state()

    def update_state(self, data: DataLike) -> None:
        """Count the tokens of a batch of texts."""
        self._lookup_layer.update_state(self._tokens_of(convert_to_tensor(data)))

    def finalize_state(self) -> None:
        """Make the vocabulary of what was counted."""
        self._lookup_layer.finalize_state()

    def reset_state(self) -> None:
        """Forget what was counted."""
        self._lookup_layer.reset_state()

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[str]:
        """The tokens in the order of their indices; see `StringLookup.get_vocabulary`."""
        return self._lookup_layer.get_vocabulary(include_special_tokens)

    def set_vocabulary(
        self, vocabulary: str | TensorLike, idf_weights: TensorLike | None = None
    ) -> None:
        """Set the vocabulary; see `StringLookup.set_vocabulary`."""
        self._lookup_layer.set_vocabulary(vocabulary, idf_weights)

    def vocabulary_size(self) -> int:
        """The number of indices, with those of the padding and of unknown tokens."""
        return self._lookup_layer.vocabulary_size()

    # Using it

    def call(self, inputs: TensorLike) -> Any:
        return self._cut(self._lookup_layer.call(self._tokens_of(inputs)))

    def compute_output_spec(self, inputs: Any) -> Any:
        """The symbolic result; the vocabulary may come later, if the length of vectors is known."""
        encoded = self._lookup_layer.encoded
        return infer_outputs(lambda x: self._cut(encoded(self._tokens_of(x), 0.0)), (inputs,), {})

    def _cut(self, found: Any) -> Any:
        """Rows of the length that was asked for."""
        if self._length is None:
            return found
        *outer, _ = ops.shape(found)
        padded = ops.concatenate([found, ops.zeros((*outer, self._length), "int64")], -1)
        return ops.reshape(padded[..., : self._length], (*outer, self._length))

    def _tokens_of(self, x: Any) -> Any:
        """The tokens of each text, filled up with empty ones."""
        if x.dtype not in STRING:
            raise InvalidArgumentError(f"{who(self)}: the inputs must be strings, got {x.dtype}")
        x = self._standardized(x)
        counts = None
        if self._split is not None:
            x, counts = self._split_up(self._flat(x))
        if self._widths is None:
            return x
        if counts is None:
            counts = ops.full(ops.shape(x)[:-1], ops.shape(x)[-1], "int32")
        return string_ngrams(x, counts, self._widths)[0]

    def _standardized(self, x: Any) -> Any:
        if callable(self._standardize):
            return host_function(self._standardize_on_host, [x], [TensorSpec(x.shape, x.dtype)])[0]
        if self._standardize in ("lower", "lower_and_strip_punctuation"):
            x = string.string_lower(x, unit="byte")
        if self._standardize in ("strip_punctuation", "lower_and_strip_punctuation"):
            x = regex_replace(x, _PUNCTUATION, "")
        return x

    def _flat(self, x: Any) -> Any:
        if len(x.shape) < 2:
            return x
        if x.shape[-1] != 1:
            raise ShapeError(
                f"{who(self)}: the inputs must be of shape (batch,) or (batch, 1), got {x.shape}",
                remedy="give one text for each example, or set split=None",
            )
        return ops.squeeze(x, -1)

    def _split_up(self, x: Any) -> tuple[Any, Any]:
        if self._split == "whitespace":
            return string.string_split(x)
        if self._split == "character":
            return string_characters(x)
        rows = TensorSpec((*x.shape, None), x.dtype)
        pieces, counts = host_function(
            self._split_on_host, [x], [rows, TensorSpec(x.shape, as_dtype("int32"))]
        )
        return pieces, counts

    def _standardize_on_host(self, x: Any) -> list[Any]:
        assert callable(self._standardize)
        return [np.asarray(self._standardize(_as_str(x)))]

    def _split_on_host(self, x: Any) -> tuple[Any, Any]:
        assert callable(self._split)
        rows = list(self._split(_as_str(x))) if x.ndim else [self._split(_as_str(x))]
        tokens = [
            [t if isinstance(t, bytes) else string.encode(str(t)) for t in row] for row in rows
        ]
        return string.fill_rows(tokens, x.shape)

    # In files

    def save_own_variables(self, store: Any) -> None:
        """Put the weights of output mode "tf_idf" into a mapping."""
        self._lookup_layer.save_own_variables(store)

    def load_own_variables(self, store: Any) -> None:
        """Take the weights of output mode "tf_idf" from such a mapping."""
        self._lookup_layer.load_own_variables(store)

    def save_assets(self, store: MutableMapping[str, bytes]) -> None:
        """Put the vocabulary into a mapping of files."""
        self._lookup_layer.save_assets(store)

    def load_assets(self, store: Mapping[str, bytes]) -> None:
        """Take the vocabulary from such a mapping."""
        self._lookup_layer.load_assets(store)

    def get_config(self) -> dict[str, Any]:
        lookup = self._lookup_layer
        return super().get_config() | {
            "max_tokens": lookup.max_tokens,
            "standardize": self._standardize,
            "split": self._split,
            "ngrams": self._ngrams_argument,
            "output_mode": self._output_mode,
            "output_sequence_length": self._length,
            "pad_to_max_tokens": lookup.pad_to_max_tokens,
            "sparse": lookup.sparse,
            "ragged": False,
            "vocabulary": lookup.input_vocabulary,
            "idf_weights": lookup.input_idf_weights,
            "encoding": self._encoding,
            "vocabulary_size": lookup.get_config()["vocabulary_size"],
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Make a layer from what `get_config` gave.

        Raises:
            InvalidArgumentError: the config names a file, which could be any of this machine.
        """
        refuse_path(cls.__name__, config)
        functions = {
            key: deserialize_keras_object(config[key])
            for key in ("standardize", "split")
            if isinstance(config.get(key), dict)
        }
        return super().from_config({**config, **functions})


def _as_str(x: Any) -> Any:
    """Bytes objects as NumPy's own strings."""
    return np.asarray([string.decode(item) for item in x.ravel().tolist()], str).reshape(x.shape)
