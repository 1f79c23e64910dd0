"""`tf.data.Options` and its parts: how a pipeline may be run. laminar chooses that itself.

The names are those of TensorFlow 1.15, so that a misspelt one is an error; what they say changes
nothing in the elements, and `Dataset.with_options` accepts it.
"""

from __future__ import annotations

from typing import Any


class _Settings:
    """Settings by name; each is None until it is set."""

    known: tuple[str, ...] = ()

    def __init__(self) -> None:
        for name in self.known:
            super().__setattr__(name, None)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.known:
            raise AttributeError(f"{type(self).__name__} has no setting {name!r}")
        super().__setattr__(name, value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return id(self)


class ThreadingOptions(_Settings):
    """How many threads there are."""

    known = ("max_intra_op_parallelism", "private_threadpool_size")


class MapVectorizationOptions(_Settings):
    """Whether functions of elements become functions of batches."""

    known = ("enabled", "use_choose_fastest")


class OptimizationOptions(_Settings):
    """Which rewrites of a pipeline are made."""

    known = (
        "apply_default_optimizations", "autotune", "autotune_buffers", "autotune_cpu_budget",
        "filter_fusion", "filter_with_random_uniform_fusion", "hoist_random_uniform",
        "map_and_batch_fusion", "map_and_filter_fusion", "map_fusion", "map_parallelization",
        "map_vectorization", "noop_elimination", "parallel_batch", "shuffle_and_repeat_fusion",
    )  # fmt: skip


class StatsOptions(_Settings):
    """What is counted of a pipeline."""

    known = ("aggregator", "prefix", "counter_prefix", "latency_all_edges")


class DistributeOptions(_Settings):
    """How elements are dealt out to workers."""

    known = ("auto_shard", "num_devices")


class Options(_Settings):
    """Settings of a data set, for `Dataset.with_options`."""

    known = (
        "experimental_deterministic", "experimental_distribute",
        "experimental_external_state_policy",
        "experimental_optimization", "experimental_slack", "experimental_stats",
        "experimental_stateful_whitelist", "experimental_threading",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.experimental_distribute = DistributeOptions()
        self.experimental_optimization = OptimizationOptions()
        self.experimental_stats = StatsOptions()
        self.experimental_threading = ThreadingOptions()

    def merge(self, options: Options) -> Options:
        """These settings, and those that another has set."""
        merged = Options()
        for each in (self, options):
            for name, value in vars(each).items():
                if value is not None:
                    setattr(merged, name, value)
        return merged
