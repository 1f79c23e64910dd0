"""`tf.data.Dataset`: laminar's pipelines with iterators for sessions.

What is given to `map` and the like is called with tensors, and computes at once: each function
here stands for one that TensorFlow would trace.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from laminar import datasets, engine
from laminar.datasets.elements import as_element, as_tensors
from laminar.datasets.graph_iterators import GraphIterator, spec_of
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.tree import map_structure

from .adapting import in_graph
from .pipeline_options import Options
from .values import static


def computing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors as one of arrays, which a walk calls."""

    @functools.wraps(fn)
    def call(*elements: Any) -> Any:
        with engine.eager_scope():
            found = fn(*(as_tensors(e) for e in elements))
            return found if isinstance(found, datasets.Dataset) else _listed(found)

    return call


def _listed(found: Any) -> Any:
    """A list of results is a tuple of them."""
    return tuple(found) if isinstance(found, list) else found


class Dataset(datasets.Dataset):
    """See `laminar.datasets.Dataset`; functions get tensors, and iterators are for sessions."""

    @property
    def output_types(self) -> Any:
        """The structure of the element types."""
        return map_structure(lambda spec: spec.dtype, self.element_spec)

    @property
    def output_shapes(self) -> Any:
        """The structure of the shapes."""
        return map_structure(lambda spec: spec.shape, self.element_spec)

    @property
    def output_classes(self) -> Any:
        """The structure of the classes: all are tensors."""
        return map_structure(lambda spec: engine.Tensor, self.element_spec)

    def with_options(self, options: Options) -> Dataset:
        """The data set itself: how it is walked is laminar's choice.

        Raises:
            TypeError: these are no Options.
        """
        if not isinstance(options, Options):
            raise TypeError(f"Dataset.with_options: expected Options, got {options!r}")
        return self

    def options(self) -> Options:
        """Settings that leave all to laminar."""
        return Options()

    def make_one_shot_iterator(self) -> Iterator:
        """An iterator that walks it once in each session."""
        with in_graph():
            return Iterator.one_shot(self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> Iterator:
        """An iterator whose `initializer` begins a walk."""
        with in_graph():
            return Iterator.initializable(self, shared_name)

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """The rows of arrays, or of constants."""
        return _own(datasets.Dataset.from_tensor_slices(map_structure(values_of, tensors)))

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """One element."""
        return _own(datasets.Dataset.from_tensors(map_structure(values_of, tensors)))

    @staticmethod
    def from_generator(  # type: ignore[override]  # the types and shapes apart, as there
        generator: Callable[..., Any],
        output_types: Any,
        output_shapes: Any = None,
        args: Any = None,
    ) -> Dataset:
        """What a generator gives."""
        signature = spec_of(output_types, output_shapes)
        return _own(
            datasets.Dataset.from_generator(
                generator, output_signature=signature, args=tuple(args or ())
            )
        )

    @staticmethod
    def range(*args: int) -> Dataset:
        """The numbers of Python's `range`."""
        return _own(datasets.Dataset.range(*args))

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: Any = None) -> Dataset:
        """The names of the files that match."""
        return _own(datasets.Dataset.list_files(file_pattern, shuffle, seed))

    @staticmethod
    def zip(*given: Any) -> Dataset:
        """Elements of several, side by side."""
        return _own(datasets.Dataset.zip(*given))

    def map(
        self,
        map_func: Any,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = True,
        name: str | None = None,
    ) -> Dataset:
        """A function of each element."""
        return _own(super().map(computing(map_func), num_parallel_calls, deterministic))

    def filter(self, predicate: Any, name: str | None = None) -> Dataset:
        """The elements for which a function is True."""
        return _own(super().filter(computing(predicate)))

    def flat_map(self, map_func: Any) -> Dataset:
        """The elements of the data sets that a function makes of each."""
        return _own(super().flat_map(computing(map_func)))

    def interleave(self, map_func: Any, *args: Any, **options: Any) -> Dataset:
        """Likewise, in turn."""
        return _own(super().interleave(computing(map_func), *args, **options))

    def reduce(self, initial_state: Any, reduce_func: Any) -> Any:
        """The last state."""
        return super().reduce(initial_state, lambda s, e: as_element(computing(reduce_func)(s, e)))


def values_of(x: Any) -> Any:
    """The value of a constant; of a tensor that a run makes there is none."""
    if not isinstance(x, engine.GraphTensor):
        return x
    found = static(x)
    if found is x:
        raise InvalidArgumentError(
            f"tf.data: {x!r} has a value in a run only, and a data set is made before",
            remedy="give the arrays themselves, or Dataset.from_generator",
        )
    return convert_to_tensor(found, x.dtype).numpy()


def _own(made: datasets.Dataset) -> Dataset:
    return Dataset(made.stage)


def _same(name: str) -> Callable[..., Any]:
    base = getattr(datasets.Dataset, name)

    @functools.wraps(base)
    def method(self: Dataset, *args: Any, **options: Any) -> Dataset:
        return _own(base(self, *args, **options))

    return method


for _name in (
    *("batch", "cache", "concatenate", "enumerate", "padded_batch", "prefetch", "repeat", "shard"),
    *("shuffle", "skip", "take", "unbatch", "window"),
):
    setattr(Dataset, _name, _same(_name))


class Iterator(GraphIterator):
    """See `laminar.datasets.GraphIterator`."""

    @staticmethod
    def from_structure(
        output_types: Any, output_shapes: Any = None, shared_name: str | None = None, **kinds: Any
    ) -> Iterator:
        """An iterator for all data sets of these types and shapes; `make_initializer` begins."""
        with in_graph():
            return Iterator(spec_of(output_types, output_shapes), None, shared_name)

    @property
    def output_types(self) -> Any:
        """The structure of the element types."""
        return map_structure(lambda spec: spec.dtype, self.element_spec)

    @property
    def output_shapes(self) -> Any:
        """The structure of the shapes."""
        return map_structure(lambda spec: spec.shape, self.element_spec)

    def make_initializer(self, dataset: datasets.Dataset, name: str | None = None) -> Any:
        """An operation that begins a walk."""
        with in_graph():
            return super().make_initializer(dataset, name)

    def get_next(self, name: str | None = None) -> Any:
        """The next element."""
        with in_graph():
            return super().get_next(name)


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """An iterator that walks a data set once in each session."""
    return dataset.make_one_shot_iterator()


def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """An iterator whose `initializer` begins a walk."""
    return dataset.make_initializable_iterator(shared_name)


def get_output_types(of: Any) -> Any:
    """The structure of the element types of a data set or an iterator."""
    return of.output_types


def get_output_shapes(of: Any) -> Any:
    """The structure of the shapes."""
    return of.output_shapes


def get_output_classes(of: Any) -> Any:
    """The structure of the classes: all are tensors."""
    return map_structure(lambda spec: engine.Tensor, of.element_spec)


def get_structure(of: Any) -> Any:
    """The structure of the specs of elements."""
    return of.element_spec


def text_line_dataset(filenames: Any, **hints: Any) -> Dataset:
    """The lines of text files."""
    return _own(datasets.Dataset.from_text_lines(values_of(filenames)))


def tf_record_dataset(filenames: Any, compression_type: Any = None, **hints: Any) -> Dataset:
    """The records of files."""
    return _own(datasets.Dataset.from_records(values_of(filenames), compression_type or ""))
