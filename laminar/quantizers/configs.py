"""How layers are quantized: the modes, and what can be chosen of each."""

from __future__ import annotations

from typing import Any

from ..engine.errors import InvalidArgumentError, UnimplementedError
from ..serialization import serialize_keras_object
from .quantizer import AbsMaxQuantizer, Quantizer, get_quantizer


class QuantizationConfig:
    """How a layer is quantized.

    Args:
        weight_quantizer: of the weights; None for the layer's own choice.
        activation_quantizer: of the inputs; None to leave them as they are.

    Examples:
        >>> isinstance(
        ...     laminar.quantizers.Int8QuantizationConfig(), laminar.quantizers.QuantizationConfig
        ... )
        True
    """

    @property
    def mode(self) -> str:
        """The mode: that of a derived class, of which one is meant to be used.

        Raises:
            UnimplementedError: this one has none.
        """
        raise UnimplementedError(
            "QuantizationConfig has no mode",
            remedy="use a derived class, such as Int8QuantizationConfig",
        )

    def __init__(self, weight_quantizer: Any = None, activation_quantizer: Any = None) -> None:
        self.weight_quantizer = get_quantizer(weight_quantizer)
        self.activation_quantizer = get_quantizer(activation_quantizer)

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to make an equal one."""
        return {
            "weight_quantizer": serialize_keras_object(self.weight_quantizer),
            "activation_quantizer": serialize_keras_object(self.activation_quantizer),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> QuantizationConfig:
        """The configuration that `get_config` described."""
        return cls(**config)

    @property
    def policy(self) -> str:
        """The mode, with what else the name of a dtype policy says of it."""
        return self.mode

    def _check_weights(self, dtype: str) -> None:
        quantizer = self.weight_quantizer
        if isinstance(quantizer, Quantizer) and quantizer.output_dtype != dtype:
            raise InvalidArgumentError(
                f"{type(self).__name__}: the weight quantizer must give {dtype}, "
                f"got {quantizer.output_dtype}"
            )


class Int8QuantizationConfig(QuantizationConfig):
    """Weights in 8 bits, with a scale for each output; by default inputs too, with one a row.

    Examples:
        >>> layer = layers.Dense(4)
        >>> layer.build((None, 8))
        >>> layer.quantize(config=laminar.quantizers.Int8QuantizationConfig())
        >>> layer.kernel.dtype
        'int8'
    """

    mode = "int8"

    def __init__(self, weight_quantizer: Any = None, activation_quantizer: Any = "default") -> None:
        if isinstance(activation_quantizer, str) and activation_quantizer == "default":
            activation_quantizer = AbsMaxQuantizer()
        super().__init__(weight_quantizer, activation_quantizer)
        self._check_weights("int8")


class Int4QuantizationConfig(QuantizationConfig):
    """Weights in 4 bits, two to a byte.

    Args:
        weight_quantizer: see `QuantizationConfig`; its range must be (-8, 7).
        activation_quantizer: the same; by default inputs stay as they are.
        block_size: so many inputs have a scale and a zero of their own, for each output; None or -1
            for one scale for each output.

    Raises:
        InvalidArgumentError: a size below 1, or blocks with quantizers.

    Examples:
        >>> layer = layers.Dense(4)
        >>> layer.build((None, 128))
        >>> layer.quantize(config=laminar.quantizers.Int4QuantizationConfig(block_size=64))
        >>> layer.quantization_mode
        'int4'
    """

    mode = "int4"

    def __init__(
        self,
        weight_quantizer: Any = None,
        activation_quantizer: Any = "default",
        block_size: int | None = 128,
    ) -> None:
        if isinstance(activation_quantizer, str) and activation_quantizer == "default":
            activation_quantizer = None
        super().__init__(weight_quantizer, activation_quantizer)
        if block_size is not None and block_size != -1 and block_size <= 0:
            raise InvalidArgumentError(
                f"Int4QuantizationConfig: block_size must be None, -1 or positive, got {block_size}"
            )
        self.block_size = block_size
        has_quantizers = weight_quantizer is not None or activation_quantizer is not None
        if self.is_grouped and has_quantizers:
            raise InvalidArgumentError(
                f"Int4QuantizationConfig: blocks of {block_size} take no quantizers",
                remedy="give block_size=None, or no quantizers",
            )
        value_range = getattr(self.weight_quantizer, "value_range", (-8, 7))
        if tuple(value_range) != (-8, 7):
            raise InvalidArgumentError(
                f"Int4QuantizationConfig: the weight quantizer must have the range (-8, 7), "
                f"got {value_range}"
            )
        self._check_weights("int8")

    @property
    def is_grouped(self) -> bool:
        """Whether there are blocks."""
        return self.block_size is not None and self.block_size > 0

    @property
    def policy(self) -> str:
        return f"int4/{self.block_size if self.is_grouped else -1}"

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "block_size": self.block_size}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> QuantizationConfig:
        """The configuration that `get_config` described; files without a block size have none."""
        return cls(**{"block_size": None, **config})


class Float8QuantizationConfig(QuantizationConfig):
    """Products of numbers in 8 bits of floating point, whose scales are learnt in training.

    Examples:
        >>> laminar.quantizers.Float8QuantizationConfig().mode
        'float8'
    """

    mode = "float8"

    def __init__(self) -> None:
        super().__init__()

    def get_config(self) -> dict[str, Any]:
        return {}


class _Calibrated(QuantizationConfig):
    """What both ways have in common that look at data once: the data is not written to files."""

    def __init__(
        self,
        dataset: Any,
        tokenizer: Any,
        weight_bits: int,
        bits: tuple[int, ...],
        num_samples: int,
        sequence_length: int,
        group_size: int,
        quantization_layer_structure: dict[str, Any] | None,
    ) -> None:
        super().__init__()
        who = type(self).__name__
        if weight_bits not in bits:
            raise InvalidArgumentError(
                f"{who}: weight_bits must be one of {list(bits)}, got {weight_bits!r}"
            )
        for name, value in (("num_samples", num_samples), ("sequence_length", sequence_length)):
            if value <= 0:
                raise InvalidArgumentError(f"{who}: {name} must be positive, got {value}")
        if group_size < -1 or group_size == 0:
            raise InvalidArgumentError(
                f"{who}: group_size must be -1, for one group, or positive, got {group_size}"
            )
        self.dataset = dataset
        self.tokenizer = tokenizer
        self.weight_bits = weight_bits
        self.num_samples = num_samples
        self.sequence_length = sequence_length
        self.group_size = group_size
        self.quantization_layer_structure = quantization_layer_structure

    def dtype_policy_string(self) -> str:
        """The mode, as the names of dtype policies have it: "gptq/4/128"."""
        return f"{self.mode}/{self.weight_bits}/{self.group_size}"

    @property
    def policy(self) -> str:
        return self.dtype_policy_string()

    def get_config(self) -> dict[str, Any]:
        names = ("weight_bits", "num_samples", "sequence_length", "group_size")
        return {
            "dataset": None,
            "tokenizer": None,
            **{name: getattr(self, name) for name in names},
            "quantization_layer_structure": self.quantization_layer_structure,
        }


class GPTQConfig(_Calibrated):
    """Weights in few bits, the error of each rounding made good by those after it.

    Args:
        dataset: texts, or token ids, that a model is run on.
        tokenizer: makes ids of texts.
        weight_bits: 2, 3, 4 or 8.
        num_samples: how many sequences are looked at.
        per_channel: whether each output has scales of its own.
        sequence_length: of a sequence.
        hessian_damping: is added to the diagonal, as a part of its mean, from 0 to 1.
        group_size: so many inputs have a scale; -1 for all.
        symmetric: whether 0 is in the middle of the levels.
        activation_order: whether the inputs that matter most are rounded first.
        quantization_layer_structure: which layers there are, block by block.

    Source: Frantar et al., "GPTQ: accurate post-training quantization for generative pre-trained
        transformers", 2022, arXiv:2210.17323, algorithm 1.

    Examples:
        >>> laminar.quantizers.GPTQConfig(
        ...     dataset=["some text"], tokenizer=str.split, weight_bits=4
        ... ).weight_bits
        4
    """

    mode = "gptq"

    def __init__(
        self,
        dataset: Any,
        tokenizer: Any,
        *,
        weight_bits: int = 4,
        num_samples: int = 128,
        per_channel: bool = True,
        sequence_length: int = 512,
        hessian_damping: float = 0.01,
        group_size: int = 128,
        symmetric: bool = False,
        activation_order: bool = False,
        quantization_layer_structure: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            dataset,
            tokenizer,
            weight_bits,
            (2, 3, 4, 8),
            num_samples,
            sequence_length,
            group_size,
            quantization_layer_structure,
        )
        if not 0 <= hessian_damping <= 1:
            raise InvalidArgumentError(
                f"GPTQConfig: hessian_damping must be from 0 to 1, got {hessian_damping}"
            )
        self.per_channel = per_channel
        self.hessian_damping = hessian_damping
        self.symmetric = symmetric
        self.activation_order = activation_order

    def get_config(self) -> dict[str, Any]:
        names = ("per_channel", "hessian_damping", "symmetric", "activation_order")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


class AWQConfig(_Calibrated):
    """Weights in 4 bits, those scaled up before that meet large inputs.

    Args:
        dataset: texts, or token ids, that a model is run on.
        tokenizer: makes ids of texts.
        weight_bits: 4.
        num_samples: how many sequences are looked at.
        sequence_length: of a sequence.
        group_size: so many inputs have a scale; -1 for all.
        num_grid_points: how many powers of the inputs' magnitudes are tried.
        quantization_layer_structure: which layers there are, block by block.

    Source: Lin et al., "AWQ: activation-aware weight quantization for LLM compression and
        acceleration", 2023, arXiv:2306.00978, section 3.2.

    Examples:
        >>> laminar.quantizers.AWQConfig(
        ...     dataset=["some text"], tokenizer=str.split, group_size=64
        ... ).mode
        'awq'
    """

    mode = "awq"

    def __init__(
        self,
        dataset: Any,
        tokenizer: Any,
        *,
        weight_bits: int = 4,
        num_samples: int = 128,
        sequence_length: int = 512,
        group_size: int = 128,
        num_grid_points: int = 20,
        quantization_layer_structure: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            dataset,
            tokenizer,
            weight_bits,
            (4,),
            num_samples,
            sequence_length,
            group_size,
            quantization_layer_structure,
        )
        if num_grid_points <= 0:
            raise InvalidArgumentError(
                f"AWQConfig: num_grid_points must be positive, got {num_grid_points}"
            )
        self.num_grid_points = num_grid_points

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "num_grid_points": self.num_grid_points}
