"""Several changes of images at once, chosen at random, in training."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack

from laminar import ops, random
from laminar.engine.graph import Tensor
from laminar.random import SeedGenerator
from laminar.typing import DataFormat

from .histograms import AutoContrast, Equalization
from .image_layer import BoxOptions, ImageLayer, Range, as_like, bounds, clipped, span
from .options import config_of, one_of, whole
from .random_color import RandomBrightness, RandomColorDegeneration, RandomContrast
from .random_geometry import INTERPOLATIONS, RandomRotation, RandomShear, RandomTranslation
from .random_tones import RandomPosterization, RandomSharpness, Solarization


class _Policy(ImageLayer):
    """What the policies have in common: the changes that they choose from. Abstract."""

    moves = True

    def __init__(
        self,
        value_range: Sequence[float],
        factor: Range,
        interpolation: str,
        seed: int | None,
        data_format: DataFormat | None,
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(data_format, **kwargs)
        self.value_range = bounds(self, value_range)
        self.factor = span(self, "factor", factor, 0.0, 1.0)
        self.interpolation = one_of(self, "interpolation", interpolation, INTERPOLATIONS)
        self._begin(seed)
        place: dict[str, Any] = {"interpolation": interpolation, "seed": seed}
        tone: dict[str, Any] = {"value_range": value_range, "seed": seed}
        bits = max(1, int(8 * self.factor[1]))
        self._shapes = [
            RandomShear(self.factor, self.factor, **place),
            RandomTranslation(self.factor, self.factor, **place),
            RandomRotation(self.factor, **place),
        ]
        self._tones = [
            Solarization(self.factor, self.factor, **tone),
            RandomPosterization(bits, **tone),
            AutoContrast(value_range),
            Equalization(value_range),
        ]
        self._colors = [
            RandomBrightness(self.factor, **tone),
            RandomColorDegeneration(self.factor, **tone),
            RandomContrast(self.factor, **tone),
            RandomSharpness(self.factor, **tone),
        ]

    @property
    def _choices(self) -> list[ImageLayer]:
        return [*self._shapes, *self._tones, *self._colors]

    def _step(self, x: Any, choice: Any, drawn: list[Any], method: str, **how: Any) -> Any:
        """`x` after the change with the number `choice`, or as it is if there is no such one."""
        branches: list[Any] = [
            partial(getattr(layer, method), drawn=numbers, **how)
            for layer, numbers in zip(self._choices, drawn, strict=True)
        ]
        return ops.switch(choice, [*branches, lambda y: y], x)

    def _draws(self, x: Tensor, seed: SeedGenerator) -> list[Any]:
        return [layer.draw(x, seed) for layer in self._choices]

    def get_config(self) -> dict[str, Any]:
        names = ("value_range", "factor", "interpolation", "seed")
        return super().get_config() | config_of(self, *names)


class RandAugment(_Policy):
    """In training, some changes one after the other, each chosen at random for a batch.

    The changes are those of geometry (shear, translation, rotation), of tones (solarization,
    posterization, stretched and equalized contrast) and of colour (brightness, degeneration,
    contrast, sharpness).

    Args:
        value_range: the least and greatest value of a pixel.
        num_ops: how many changes.
        factor: how strong: see the layers of the changes.
        interpolation: "nearest" or "bilinear".
        seed: a whole number, which fixes all draws that follow.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, 3) -> y: the same

    Raises:
        InvalidArgumentError: a number outside of its bounds, no range, or another interpolation.

    Source: Cubuk et al., "RandAugment: practical automated data augmentation with a reduced search
        space", 2019, arXiv:1909.13719, section 3.

    Examples:
        >>> layers.RandAugment(seed=1)(np.zeros((2, 8, 8, 3)), training=True).shape
        (2, 8, 8, 3)
    """

    def __init__(
        self,
        value_range: Sequence[float] = (0, 255),
        num_ops: int = 2,
        factor: Range = 0.5,
        interpolation: str = "bilinear",
        seed: int | None = None,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(value_range, factor, interpolation, seed, data_format, **kwargs)
        self.num_ops = whole(self, "num_ops", num_ops, 0)

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        chosen = random.randint((self.num_ops,), 0, len(self._choices), seed=seed)
        return {"layer_idxes": chosen, "transforms": self._draws(x, seed)}

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        return self._changed(x, drawn, "change")

    def change_masks(self, masks: Tensor, drawn: dict[str, Any]) -> Any:
        return self._changed(masks, drawn, "change_masks")

    def change_boxes(self, boxes: Tensor, drawn: dict[str, Any], size: tuple[Any, Any]) -> Any:
        return self._changed(boxes, drawn, "change_boxes", size=size)

    def _changed(self, x: Tensor, drawn: dict[str, Any], method: str, **how: Any) -> Any:
        for number in range(self.num_ops):
            x = self._step(x, drawn["layer_idxes"][number], drawn["transforms"], method, **how)
        return x

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "num_ops")


class AugMix(_Policy):
    """In training, images are mixed with several versions of themselves, each a chain of changes.

    y = w x + (1 - w) sum over chains of v_k chain_k(x), with w from a beta distribution, v from a
    Dirichlet one, and each step of a chain chosen at random for a batch, or left out.

    Args:
        value_range: the least and greatest value of a pixel.
        num_chains: how many chains.
        chain_depth: steps of a chain.
        factor: how strong the changes are: see their layers.
        alpha: of the beta and the Dirichlet distribution.
        all_ops: whether brightness, contrast, degeneration and sharpness are among the changes,
            besides shear, translation, rotation, solarization, posterization, and stretched and
            equalized contrast.
        interpolation: "nearest" or "bilinear".
        seed: a whole number, which fixes all draws that follow.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, 3) -> y: the same

    Raises:
        InvalidArgumentError: a number outside of its bounds, no range, or another interpolation.

    Source: Hendrycks et al., "AugMix: a simple data processing method to improve robustness and
        uncertainty", 2019, arXiv:1912.02781, section 3.

    Examples:
        >>> images = np.random.default_rng(0).integers(0, 255, (2, 8, 8, 3)).astype("float32")
        >>> layers.AugMix(seed=1)(images, training=True).shape
        (2, 8, 8, 3)
    """

    def __init__(
        self,
        value_range: Sequence[float] = (0, 255),
        num_chains: int = 3,
        chain_depth: int = 3,
        factor: Range = 0.3,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: str = "bilinear",
        seed: int | None = None,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(value_range, factor, interpolation, seed, data_format, **kwargs)
        self.num_chains = whole(self, "num_chains", num_chains)
        self.chain_depth = whole(self, "chain_depth", chain_depth)
        self.alpha = alpha
        self.all_ops = all_ops

    @property
    def _choices(self) -> list[ImageLayer]:
        return super()._choices if self.all_ops else [*self._shapes, *self._tones]

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        shares = random.gamma((self.num_chains,), self.alpha, seed=seed)
        weight = random.beta((), self.alpha, self.alpha, seed=seed)
        steps = self.num_chains * self.chain_depth
        chosen = random.randint((steps,), 0, len(self._choices) + 1, seed=seed)
        draws = [self._draws(x, seed) for _ in range(steps)]
        return {
            "weight_sample": weight,
            "chain_mixing_weights": shares / ops.sum(shares),
            "layer_idxes": chosen,
            "transforms": draws,
        }

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        return clipped(self._mixed(x, drawn, "change"), self.value_range)

    def change_masks(self, masks: Tensor, drawn: dict[str, Any]) -> Any:
        return self._mixed(masks, drawn, "change_masks")

    def _mixed(self, x: Tensor, drawn: dict[str, Any], method: str) -> Any:
        weight, shares = (
            as_like(drawn[name], x) for name in ("weight_sample", "chain_mixing_weights")
        )
        chosen, draws = drawn["layer_idxes"], drawn["transforms"]
        mixed = ops.zeros_like(x)
        for chain in range(self.num_chains):
            y = x
            for depth in range(self.chain_depth):
                step = chain * self.chain_depth + depth
                y = self._step(y, chosen[step], draws[step], method)
            mixed = mixed + shares[chain] * y
        return weight * x + (1 - weight) * mixed

    def get_config(self) -> dict[str, Any]:
        names = ("num_chains", "chain_depth", "alpha", "all_ops")
        return super().get_config() | config_of(self, *names)
