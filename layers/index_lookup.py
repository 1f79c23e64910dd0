"""IndexLookup: categories numbered by a vocabulary, which is given or learned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, MutableMapping
from typing import Any, Self

import numpy as np

from laminar import ops
from laminar.config import floatx
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError, ShapeError
from laminar.engine.graph import EagerTensor, as_dtype, int64
from laminar.engine.ops.array import gather
from laminar.engine.ops.array.search import find_sorted
from laminar.engine.ops.core.checks import check
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.math import compare
from laminar.naming import who
from laminar.typing import DataLike, DTypeLike, Ints, Shape, TensorLike

from .category_encoding import MODES, encode
from .data_layer import DataLayer, as_array, as_list, batches, refuse_sparse
from .hashing import as_salt, as_text, bin_of
from .operation import infer_outputs
from .options import one_of, whole
from .symbolic import KerasTensor
from .token_counts import TokenCounts
from .vocabulary_files import read_vocabulary, refuse_path, vocabulary_of_asset, write_asset

_NOWHERE = np.iinfo(np.int64).max  # the index of what is masked, where vectors are made of it


class IndexLookup(DataLayer):
    """Base of StringLookup and IntegerLookup, which say what the arguments mean.

    The indices are: 0 for the mask token (for output mode "int"), then the `num_oov_indices` of
    tokens out of the vocabulary, then those of the vocabulary. Tokens are kept as bytes objects or
    ints.
    """

    def __init__(
        self,
        max_tokens: int | None,
        num_oov_indices: int,
        mask_token: str | int | None,
        oov_token: str | int | None,
        vocabulary_dtype: DTypeLike,
        vocabulary: str | TensorLike | None = None,
        idf_weights: TensorLike | None = None,
        invert: bool = False,
        output_mode: str = "int",
        sparse: bool = False,
        pad_to_max_tokens: bool = False,
        oov_method: str = "floormod",
        name: str | None = None,
        salt: Ints | None = None,
        **kwargs: Any,
    ) -> None:
        frozen = kwargs.pop("vocabulary_size", None)
        has_vocabulary = kwargs.pop("has_input_vocabulary", vocabulary is not None)
        for inert in ("trainable", "dtype"):  # in configs
            kwargs.pop(inert, None)
        super().__init__(name=name, **kwargs)
        mode = {"binary": "multi_hot", "tf-idf": "tf_idf"}.get(output_mode, output_mode)
        self.output_mode = one_of(self, "output_mode", mode, ("int", *MODES, "tf_idf"))
        self.oov_method = one_of(self, "oov_method", oov_method, ("floormod", "farmhash"))
        self.max_tokens = None if max_tokens is None else whole(self, "max_tokens", max_tokens, 2)
        self.num_oov_indices = whole(self, "num_oov_indices", num_oov_indices, 0)
        self.pad_to_max_tokens = pad_to_max_tokens
        self.mask_token, self.oov_token = mask_token, oov_token
        self.vocabulary_dtype = str(as_dtype(vocabulary_dtype))
        self.invert = invert
        self.salt = as_salt(who(self), salt)
        refuse_sparse(self, sparse)
        self.sparse = False
        self._check_options(idf_weights, vocabulary)
        self.input_vocabulary = None if isinstance(vocabulary, str) else as_list(vocabulary)
        self.input_idf_weights = as_list(idf_weights)
        self._has_input_vocabulary = has_vocabulary
        self._frozen_size: int | None = frozen
        self.idf_weights: EagerTensor | None = None
        self.reset_state()
        self._set_tokens([])
        if vocabulary is not None:
            self.set_vocabulary(vocabulary, idf_weights)

    def _check_options(self, idf_weights: Any, vocabulary: Any) -> None:
        if self.pad_to_max_tokens and self.max_tokens is None:
            raise InvalidArgumentError(f"{who(self)}: pad_to_max_tokens needs max_tokens")
        if self.salt is not None and not self._is_text and self.oov_method != "farmhash":
            raise InvalidArgumentError(
                f"{who(self)}: salt is for oov_method='farmhash', got {self.oov_method!r}"
            )
        if self.invert and self.output_mode != "int":
            raise InvalidArgumentError(
                f"{who(self)}: output_mode must be 'int' with invert, got {self.output_mode!r}"
            )
        if self.output_mode != "tf_idf" and idf_weights is not None:
            raise InvalidArgumentError(
                f"{who(self)}: idf_weights is for output_mode 'tf_idf', got {self.output_mode!r}"
            )
        if self.output_mode == "tf_idf" and vocabulary is not None and idf_weights is None:
            raise InvalidArgumentError(
                f"{who(self)}: a vocabulary for output_mode 'tf_idf' needs idf_weights",
                remedy="give one weight for each token, or call adapt()",
            )

    # What it is

    @property
    def _is_text(self) -> bool:
        return self.vocabulary_dtype == "string"

    @property
    def compute_dtype(self) -> str:
        """The dtype of the tokens."""
        return self.vocabulary_dtype

    @property
    def variable_dtype(self) -> str:
        """The dtype of the tokens."""
        return self.vocabulary_dtype

    @property
    def _oov_start(self) -> int:
        return 1 if self.mask_token is not None and self.output_mode == "int" else 0

    @property
    def _token_start(self) -> int:
        return self._oov_start + self.num_oov_indices

    @property
    def _special_tokens(self) -> list[Any]:
        special = [self.mask_token] * self._oov_start + [self.oov_token] * self.num_oov_indices
        return [None if token is None else self._token(token) for token in special]

    def _token(self, value: Any) -> Any:
        """A token as it is kept."""
        if self._is_text:
            return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        return int(value)

    def vocabulary_size(self) -> int:
        """The number of indices, with those of the mask and of tokens out of the vocabulary."""
        return self._token_start + len(self._tokens)

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[Any]:
        """The tokens in the order of their indices.

        Args:
            include_special_tokens: whether to begin with the mask token and the token for those out
                of the vocabulary.
        """
        tokens = [self._readable(token) for token in self._tokens]
        if not include_special_tokens:
            return tokens
        mask, oov = [self.mask_token] * self._oov_start, [self.oov_token] * self.num_oov_indices
        return [*mask, *oov, *tokens]

    def _readable(self, token: Any) -> Any:
        return token

    # The vocabulary

    def set_vocabulary(
        self, vocabulary: str | TensorLike, idf_weights: TensorLike | None = None
    ) -> None:
        """Set the vocabulary, and for output mode "tf_idf" the weights.

        Args:
            vocabulary: tokens, with or without the special ones at their start; or the path of a
                text file with a token on each line.
            idf_weights: one for each token of `vocabulary`.

        Raises:
            InvalidArgumentError: no tokens, repeated or too many ones, a special token among them,
                or weights missing or not wanted.
            ShapeError: not as many weights as tokens.
            FailedPreconditionError: another number of tokens, where vectors of a fixed length were
                promised.
            MissingFileError: there is no such file.
        """
        if (idf_weights is not None) != (self.output_mode == "tf_idf"):
            raise InvalidArgumentError(
                f"{who(self)}: idf_weights must be given for output_mode 'tf_idf' and for no "
                f"other, which is {self.output_mode!r}",
                remedy="a vocabulary file cannot hold them: pass the tokens as a list",
            )
        if isinstance(vocabulary, str):
            given, special = read_vocabulary(vocabulary, is_text=self._is_text), False
        else:
            given = [self._token(token) for token in as_array(vocabulary).ravel().tolist()]
            special = given[: self._token_start] == self._special_tokens
        if not given:
            raise InvalidArgumentError(f"{who(self)}: the vocabulary is empty")
        tokens = given[self._token_start :] if special else given
        self._check_tokens(tokens)
        weights = None
        if idf_weights is not None:
            weights = np.asarray(convert_to_tensor(idf_weights).numpy(), floatx())
            if weights.shape != (len(given),):
                raise ShapeError(
                    f"{who(self)}: idf_weights has shape {weights.shape}, expected "
                    f"({len(given)},): one for each token"
                )
            if not special:
                front = np.full(self._token_start, weights.mean(), weights.dtype)
                weights = np.concatenate([front, weights])
        self._install(tokens, weights)

    def _check_tokens(self, tokens: list[Any]) -> None:
        repeated = [token for token, count in Counter(tokens).items() if count > 1]
        if repeated:
            raise InvalidArgumentError(
                f"{who(self)}: the vocabulary has tokens more than once: {repeated[:5]}",
                remedy="give each token once",
            )
        reserved = [("mask_token", self.mask_token)]
        if self.invert:
            reserved.append(("oov_token", self.oov_token))
        for what, token in reserved:
            if token is not None and self._token(token) in tokens:
                raise InvalidArgumentError(
                    f"{who(self)}: the {what} {token!r} is in the vocabulary at "
                    f"{tokens.index(self._token(token))}",
                    remedy="leave the special tokens out, or begin the vocabulary with them: "
                    f"{self._special_tokens}",
                )
        size = self._token_start + len(tokens)
        if self.max_tokens is not None and size > self.max_tokens:
            raise InvalidArgumentError(
                f"{who(self)}: the vocabulary has {size} tokens with the special ones, "
                f"max_tokens is {self.max_tokens}"
            )

    def _install(self, tokens: list[Any], weights: Any) -> None:
        """Take a vocabulary that was checked, and the weights of all its indices."""
        size = self._token_start + len(tokens)
        fixed = self.output_mode != "int" and not self.pad_to_max_tokens
        if fixed and self._frozen_size not in (None, size):
            raise FailedPreconditionError(
                f"{who(self)}: the vocabulary had {self._frozen_size} tokens, the new one has "
                f"{size}: the length of the output would change",
                remedy="set max_tokens and pad_to_max_tokens=True, or make a new layer",
            )
        self._set_tokens(tokens)
        self._frozen_size = size
        if weights is not None:
            self._set_idf(weights)

    def _set_tokens(self, tokens: list[Any]) -> None:
        self._tokens = tokens
        if self.invert:
            self._values = self._tokens_by_index()
        else:
            self._keys, self._places = self._indices_by_token()

    def _indices_by_token(self) -> tuple[EagerTensor, EagerTensor]:
        """The tokens in order, and the index of each; the first index is that of all others."""
        order = sorted(range(len(self._tokens)), key=self._tokens.__getitem__)
        missing = self._oov_start if self.num_oov_indices == 1 else -1
        places = [missing, *(self._token_start + i for i in order)]
        keys = self._array([self._tokens[i] for i in order])
        return keys, EagerTensor(np.asarray(places, np.int64))

    def _tokens_by_index(self) -> EagerTensor:
        """The token of each index; at the end that of all others."""
        special = [self.oov_token] * self._token_start
        if self._oov_start:
            special[0] = self.mask_token
        ends = [*special, self.oov_token]
        if None in ends:
            raise InvalidArgumentError(f"{who(self)}: invert needs an oov_token")
        kept = [self._token(token) for token in ends]
        return self._array([*kept[:-1], *self._tokens, kept[-1]])

    def _array(self, tokens: list[Any]) -> EagerTensor:
        dtype = as_dtype(self.vocabulary_dtype)
        array = np.empty(len(tokens), dtype.numpy)
        array[:] = tokens
        return EagerTensor(array, dtype)

    def _set_idf(self, weights: Any) -> None:
        """Take the weights of all indices; with `pad_to_max_tokens`, zeros follow."""
        padding = self._depth() - len(weights)
        self.idf_weights = EagerTensor(np.pad(weights, (0, padding)).astype(floatx()))

    def _depth(self) -> int:
        """The length of vectors."""
        depth = self.max_tokens if self.pad_to_max_tokens else self._frozen_size
        if depth is None:
            raise FailedPreconditionError(
                f"{who(self)} has no vocabulary yet",
                remedy="pass vocabulary=, or call adapt(data) first, on training data",
            )
        return depth

    # Learning it

    def adapt(self, data: DataLike, steps: int | None = None) -> None:
        """Learn the vocabulary: the tokens of data, the most frequent first.

        Tokens as frequent as each other are in falling order.

        Args:
            data: an array or a list of tokens, with the examples first; or an iterable of batches.
            steps: at most so many batches.

        Raises:
            InvalidArgumentError: the layer was given its vocabulary.
            FailedPreconditionError: see `set_vocabulary`.
        """
        self.reset_state()
        if hasattr(data, "__array__") or isinstance(data, list | tuple | str | bytes):
            array = as_array(data)
            self.update_state(array[:, None] if array.ndim == 1 else array)
        else:
            for batch in batches(data, steps):
                self.update_state(batch)
        self.finalize_state()

    def update_state(self, data: DataLike) -> None:
        """Count the tokens of a batch: the first axis has the examples; a vector is one example.

        Raises:
            InvalidArgumentError: the layer was given its vocabulary.
        """
        if self._has_input_vocabulary:
            raise InvalidArgumentError(
                f"{who(self)}: it was given its vocabulary and cannot learn another",
                remedy="make the layer without vocabulary=",
            )
        array = as_array(convert_to_tensor(data, self.vocabulary_dtype))
        self._counts.update(array.reshape(1, -1) if array.ndim < 2 else array)

    def reset_state(self) -> None:
        """Forget what was counted."""
        self._counts = TokenCounts(by_document=self.output_mode == "tf_idf")

    def finalize_state(self) -> None:
        """Make the vocabulary of what was counted.

        The weights of output mode "tf_idf" are ln(1 + documents / (1 + documents with the token));
        tokens out of the vocabulary have their mean.
        """
        if not self._counts.tokens:
            self._install(self._tokens, None)
            return
        special = [t for t in (self.mask_token, self.oov_token) if t is not None]
        limit = None
        if self.max_tokens is not None:
            limit = max(self.max_tokens - self._token_start, 0)
        tokens = self._counts.most_frequent([self._token(t) for t in special], limit)
        weights = None
        if self.output_mode == "tf_idf":
            idf = self._counts.inverse_document_frequencies(tokens)
            mean = idf.mean() if idf.size else 0.0
            weights = np.concatenate([np.full(self._token_start, mean), idf])
        self._install(tokens, weights)
        self.reset_state()

    # Using it

    def call(self, inputs: TensorLike) -> Any:
        if self.output_mode == "tf_idf" and self.idf_weights is None:
            raise FailedPreconditionError(
                f"{who(self)} has no weights yet",
                remedy="call adapt(data) first, or set_vocabulary(tokens, idf_weights)",
            )
        return self.encoded(inputs, self.idf_weights)

    def compute_output_spec(self, inputs: Any) -> Any:
        """The symbolic result; the vocabulary may come later, if the length of vectors is known."""
        return infer_outputs(lambda x: self.encoded(x, 0.0), (inputs,), {})

    def encoded(self, inputs: Any, idf_weights: Any) -> Any:
        """The output, with these weights for output mode "tf_idf"."""
        if self.invert:
            return self._tokens_of(inputs)
        indices = self._indices_of(ops.cast(inputs, self.compute_dtype))
        if self.output_mode == "int":
            return indices
        if self.output_mode == "tf_idf":
            return encode(indices, "count", self._depth(), floatx()) * idf_weights
        return encode(indices, self.output_mode, self._depth(), "int64")

    def _indices_of(self, x: Any) -> Any:
        found = gather.gather(self._places, find_sorted(self._keys, x) + 1)
        if self.num_oov_indices > 1:
            found = ops.where(found < 0, self._oov_start + self._oov_bin(x), found)
        known = found >= 0
        if self.mask_token is not None:
            is_mask = compare.equal(x, convert_to_tensor(self._token(self.mask_token), x.dtype))
            found = ops.where(is_mask, 0 if self.output_mode == "int" else _NOWHERE, found)
            known = ops.logical_or(known, is_mask)
        if not self.num_oov_indices:
            message = f"{who(self)}: a token is not in the vocabulary, and num_oov_indices is 0"
            found = ops.where(check(known, message, [x]), found, found)
        return found

    def _oov_bin(self, x: Any) -> Any:
        if self._is_text or self.oov_method == "farmhash":
            return bin_of(as_text(x), self.num_oov_indices, self.salt)
        return x % self.num_oov_indices

    def _tokens_of(self, indices: Any) -> Any:
        x = ops.cast(indices, "int64")
        size = self.vocabulary_size()
        inside = ops.logical_and(x >= 0, x < size)
        return gather.gather(self._values, ops.where(inside, x, size))

    def compute_output_shape(self, input_shape: Shape) -> Any:
        """The shape of the output for an input of a given shape."""
        dtype = int64 if self.invert else self.compute_dtype
        return tuple(self.compute_output_spec(KerasTensor(input_shape, dtype)).shape)

    # In files

    def get_build_config(self) -> dict[str, Any]:
        """Nothing: there are no weights to make."""
        return {}

    def save_own_variables(self, store: Any) -> None:
        """Put the weights of output mode "tf_idf" into a mapping."""
        if self.idf_weights is not None:
            store["idf_weights"] = self.idf_weights.numpy()

    def load_own_variables(self, store: Any) -> None:
        """Take the weights of output mode "tf_idf" from such a mapping.

        Raises:
            ShapeError: they are no vector of the length of the output.
        """
        if self.output_mode != "tf_idf":
            return
        weights = np.asarray(store["idf_weights"])
        if weights.shape != (self._depth(),):
            raise ShapeError(
                f"{who(self)}: the weights in the file have shape {weights.shape}, "
                f"expected ({self._depth()},)"
            )
        self._set_idf(weights)

    def save_assets(self, store: MutableMapping[str, bytes]) -> None:
        """Put the vocabulary into a mapping of files; one that was given is in the config.

        Raises:
            InvalidArgumentError: a token has a line break, so that a text file cannot hold it.
        """
        if self.input_vocabulary is None:
            special = self._special_tokens
            write_asset(
                store, [*(special if None not in special else ()), *self._tokens], who(self)
            )

    def load_assets(self, store: Mapping[str, bytes]) -> None:
        """Take the vocabulary from such a mapping.

        Raises:
            DataLossError: it is not there, or damaged.
        """
        if self.input_vocabulary is not None:
            return
        size = self._frozen_size or 0
        tokens = vocabulary_of_asset(store, size, who(self), is_text=self._is_text)
        if not tokens:
            return
        weights = None if self.idf_weights is None else self.idf_weights.numpy()[: len(tokens)]
        self.set_vocabulary(tokens, weights)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "invert": self.invert,
            "max_tokens": self.max_tokens,
            "num_oov_indices": self.num_oov_indices,
            "oov_token": self.oov_token,
            "mask_token": self.mask_token,
            "output_mode": self.output_mode,
            "sparse": self.sparse,
            "pad_to_max_tokens": self.pad_to_max_tokens,
            "vocabulary_dtype": self.vocabulary_dtype,
            "idf_weights": self.input_idf_weights,
            "vocabulary": self.input_vocabulary,
            "vocabulary_size": self._frozen_size,
            "oov_method": self.oov_method,
            "salt": self.salt,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Make a layer from what `get_config` gave.

        Raises:
            InvalidArgumentError: the config names a file, which could be any of this machine.
        """
        refuse_path(cls.__name__, config)
        return super().from_config(config)
