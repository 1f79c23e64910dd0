"""Variables that begin with values of a checkpoint: `tf.train.init_from_checkpoint`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from laminar import engine
from laminar.engine.errors import InvalidArgumentError, NotFoundError, ShapeError
from laminar.engine.graph import TensorShape, get_default_graph
from laminar.engine.ops.array.slicing import slice_at
from laminar.engine.ops.core.basic import constant
from laminar.engine.ops.core.naming import call_named
from laminar.engine.ops.io.checkpoints import restore_v2
from laminar.engine.ops.math.cast import cast
from laminar.engine.state.partitioned import PartitionedVariable

from .adapting import in_graph


def _prefix(ckpt_dir_or_file: Any) -> str:
    path = os.fspath(ckpt_dir_or_file)
    found = engine.latest_checkpoint(path) if os.path.isdir(path) else path
    if found is None or not engine.checkpoint_exists(found):
        raise NotFoundError(f"init_from_checkpoint: there is no checkpoint at {path!r}")
    return found


def _whole(variable: Any) -> str:
    """The name under which a checkpoint has a variable."""
    name = variable.name if variable.part_of is None else variable.part_of.name
    return str(name).removesuffix(":0")


def init_from_checkpoint(ckpt_dir_or_file: Any, assignment_map: Mapping[str, Any]) -> None:
    """Have variables begin with the values of a checkpoint, once their initializers run.

    Args:
        ckpt_dir_or_file: the prefix of a checkpoint, or a folder, whose newest one is meant.
        assignment_map: of names in the checkpoint to variables: a variable, the parts of one, its
            name; or of a scope there, "a/" ("/" for all), to one here, "b/": then each variable in
            it begins with the value of the same name there.

    Raises:
        NotFoundError: there is no checkpoint, or it does not have a name, or the graph does not
            have a variable.
        ShapeError: a variable has another shape there.
        InvalidArgumentError: a scope is mapped to something else.

    Examples:
        >>> from laminar.compat import v1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     w = tf.get_variable("w", initializer=3.0)
        ...     session.run(w.initializer)
        ...     path = tf.train.Saver().save(session, "old")
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     w = tf.get_variable("new/w", [])
        ...     tf.train.init_from_checkpoint("old", {"/": "new/"})
        ...     session.run(tf.global_variables_initializer())
        ...     session.run(w)
        np.float32(3.0)
    """
    prefix = _prefix(ckpt_dir_or_file)
    known = dict(engine.list_variables(prefix))
    variables = list(engine.global_variables())
    for there, here in assignment_map.items():
        for name, targets in _pairs(there, here, variables):
            if name not in known:
                raise NotFoundError(
                    f"init_from_checkpoint: {prefix!r} has no {name!r}",
                    remedy="see tf.train.list_variables",
                )
            for variable in targets:
                _begin_with(variable, prefix, name, known[name])


def _pairs(there: str, here: Any, variables: Sequence[Any]) -> list[tuple[str, list[Any]]]:
    """(name in the checkpoint, variables) of one item of the map."""
    if not isinstance(here, str):
        parts = here if isinstance(here, list | tuple | PartitionedVariable) else [here]
        return [(there, list(parts))]
    if there.endswith("/") and here and not here.endswith("/"):
        raise InvalidArgumentError(
            f"init_from_checkpoint: the scope {there!r} is mapped to {here!r}",
            remedy='map it to a scope, with "/" at its end',
        )
    if not there.endswith("/"):
        named = [v for v in variables if _whole(v) == here]
        if not named:
            raise NotFoundError(f"init_from_checkpoint: the graph has no variable {here!r}")
        return [(there, named)]
    scope_there, scope_here = there.lstrip("/"), here.lstrip("/")
    found: dict[str, list[Any]] = {}
    for variable in variables:
        name = _whole(variable)
        if name.startswith(scope_here):
            found.setdefault(scope_there + name.removeprefix(scope_here), []).append(variable)
    if not found:
        raise NotFoundError(f"init_from_checkpoint: the graph has no variables in {here!r}")
    return list(found.items())


def _begin_with(variable: Any, prefix: str, name: str, shape: Any) -> None:
    part = variable.part_of
    expected = variable.shape if part is None else part.shape
    if not expected.is_compatible_with(shape):
        raise ShapeError(
            f"init_from_checkpoint: {name!r} is {TensorShape(shape)} in {prefix!r}, the variable "
            f"{_whole(variable)!r} is {expected}"
        )
    dtype = engine.load_checkpoint(prefix).get_variable_to_dtype_map()[name]
    graph = variable.graph or get_default_graph()
    with graph.as_default(), graph.control_dependencies(None), graph.device(variable.device):
        (value,) = call_named(
            "checkpoint_initializer",
            restore_v2.many,
            constant(prefix, "string"),
            constant([name], "string"),
            constant([""], "string"),
            dtypes=(dtype,),
            shapes=(TensorShape(shape),),
        )
        if part is not None:
            begins, sizes = zip(*part.extents, strict=True)
            value = slice_at(value, list(begins), list(sizes))
        value = cast(value, variable.dtype)
        variable.initial_value = value
        update: Any = engine.assign(variable, value)
        variable.initializer = update.op


def warm_start(
    ckpt_to_initialize_from: Any,
    vars_to_warm_start: Any = ".*",
    var_name_to_vocab_info: Any = None,
    var_name_to_prev_var_name: Mapping[str, str] | None = None,
) -> None:
    """Have trainable variables begin with the values that they have in a checkpoint.

    Args:
        ckpt_to_initialize_from: see `init_from_checkpoint`.
        vars_to_warm_start: a regular expression that names begin with, names, or variables.
        var_name_to_vocab_info: must be empty: rows of embeddings are not moved about.
        var_name_to_prev_var_name: names in the checkpoint, of those that have another one there.
    """
    if var_name_to_vocab_info:
        raise InvalidArgumentError(
            "warm_start: vocabularies are not compared",
            remedy="assign the rows of the embedding from those of tf.train.load_variable",
        )
    with in_graph():
        trainable = list(engine.trainable_variables())
        if isinstance(vars_to_warm_start, str):
            chosen = [v for v in trainable if re.match(vars_to_warm_start, _whole(v))]
        else:
            names = [v if isinstance(v, str) else _whole(v) for v in vars_to_warm_start]
            chosen = [v for v in engine.global_variables() if _whole(v) in names]
        before = var_name_to_prev_var_name or {}
        groups: dict[str, list[Any]] = {}
        for variable in chosen:
            name = _whole(variable)
            groups.setdefault(before.get(name, name), []).append(variable)
        init_from_checkpoint(ckpt_to_initialize_from, groups)
