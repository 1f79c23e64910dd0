"""Rules for constants, placeholders, variables, random numbers, checkpoints and summaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, UnimplementedError
from ...graph import GraphTensor, TensorShape, resource
from ...ops.array.join import concat, unstack
from ...ops.core.basic import const_op, constant, group, identity, placeholder_op
from ...ops.core.checks import check
from ...ops.core.op_def import OpDef
from ...ops.core.registry import lookup
from ...ops.io import checkpoints, summaries
from ...ops.math.cast import cast
from ...ops.random import draws
from ...ops.state import variable as variables
from ...ops.state.variable_scatter import variable_scatter
from ...ops.text.string import string_concat
from ...state.random_source import draw_state
from .rules import Call, Reference, direct, rule


@rule("Const")
def _const(call: Call) -> Any:
    value = call.node.attr("value")
    if not isinstance(value, np.ndarray):
        raise InvalidArgumentError("a constant without a value")
    kind = call.node.attr("dtype", "string" if value.dtype == object else str(value.dtype))
    return direct(call, const_op, value=value, dtype=kind)


@rule("Placeholder", "PlaceholderV2")
def _placeholder(call: Call) -> Any:
    shape = call.node.attr("shape", TensorShape(None))
    return direct(call, placeholder_op, shape=shape, dtype=call.node.attr("dtype"))


@rule("PlaceholderWithDefault")
def _with_default(call: Call) -> Any:
    shape = call.node.attr("shape", TensorShape(None))
    return direct(call, lookup("PlaceholderWithDefault"), call[0], shape=shape)


@rule("Identity", "Snapshot", "PreventGradient", "RefIdentity")
def _identity(call: Call) -> Any:
    found = call.inputs[0]
    if isinstance(found, Reference) and found.value is None:
        return direct(call, variables.read_variable, found.handle, **found.attrs)
    if not isinstance(found, Reference) and found.dtype == resource:
        return [found]
    return direct(call, identity, call[0])


@rule("IdentityN")
def _identity_n(call: Call) -> Any:
    """Variables stay what they are: functions hand them on."""
    return [
        x if isinstance(x, Reference) and x.value is None else call[i]
        for i, x in enumerate(call.inputs)
    ]


@rule("NoOp")
def _nothing(call: Call) -> Any:
    return direct(call, lookup("NoOp"))


# Variables


@rule("VariableV2", "Variable", "VarHandleOp")
def _variable(call: Call) -> Any:
    attr = call.node.attr
    shape, dtype = attr("shape", TensorShape(None)), attr("dtype")
    op = direct(
        call,
        variables.var_handle,
        shape=shape,
        dtype=dtype,
        container=call.node.text("container"),
        shared_name=call.node.text("shared_name") or call.scope + call.name,
    )
    return [Reference(op.outputs[0], shape, dtype)]


@rule("ReadVariableOp")
def _read(call: Call) -> Any:
    found = call.reference(0)
    return direct(call, variables.read_variable, found.handle, **found.attrs)


def _updates(op: OpDef, *names: str) -> None:
    @rule(*names)
    def update(call: Call) -> Any:
        found = call.reference(0)
        done = direct(call, op, found.handle, call[1], **found.attrs)
        return done if call.node.op.endswith("Op") else [found._replace(value=done.outputs[0])]


_updates(variables.assign, "Assign", "AssignVariableOp")
_updates(variables.assign_add, "AssignAdd", "AssignAddVariableOp")
_updates(variables.assign_sub, "AssignSub", "AssignSubVariableOp")


@rule("IsVariableInitialized", "VarIsInitializedOp")
def _is_initialized(call: Call) -> Any:
    return direct(call, variables.is_initialized, call.reference(0).handle)


@rule("VariableShape")
def _variable_shape(call: Call) -> Any:
    shape = call.reference(0).shape
    if not shape.is_fully_defined:
        raise UnimplementedError("the shape of the variable is not known")
    return constant(np.array(shape, call.node.attr("out_type", "int32")))


def _scatters(mode: str, *names: str) -> None:
    @rule(*names)
    def scatter(call: Call) -> Any:
        found = call.reference(0)
        value = variable_scatter(
            found.handle, call[1], call[2], mode=mode, axes=None, **found.attrs
        )
        assert isinstance(value, GraphTensor)
        if call.node.op.startswith("Resource"):
            return value.op
        return [found._replace(value=value)]


for _mode in ("Add", "Sub", "Update", "Mul", "Div", "Min", "Max"):
    _scatters(_mode.lower(), f"Scatter{_mode}", f"ResourceScatter{_mode}")


# Random numbers: other ones than TensorFlow's, of the same distributions


def _draws(draw: Callable[..., Any], *names: str) -> None:
    @rule(*names)
    def random(call: Call) -> Any:
        attr = call.node.attr
        seeds = attr("seed", 0), attr("seed2", 0)
        seed = None if seeds == (0, 0) else (seeds[0] * 0x9E3779B1 + seeds[1]) % 2**31
        return draw(call, draw_state(seed))


_draws(
    lambda c, s: draws.random_uniform(s, c[0], dtype=c.node.attr("dtype")),
    "RandomUniform",
)
_draws(
    lambda c, s: draws.random_normal(s, c[0], dtype=c.node.attr("dtype")),
    "RandomStandardNormal",
)
_draws(
    lambda c, s: draws.random_truncated_normal(s, c[0], dtype=c.node.attr("dtype")),
    "TruncatedNormal",
)
_draws(
    lambda c, s: draws.random_int(s, c[0], c[1], c[2], c.node.attr("Tout")),
    "RandomUniformInt",
)
_draws(lambda c, s: draws.random_shuffle(s, c[0]), "RandomShuffle")


# Checkpoints


@rule("SaveV2")
def _save(call: Call) -> Any:
    return direct(call, checkpoints.save_v2, *call.values)


@rule("RestoreV2")
def _restore(call: Call) -> Any:
    dtypes = tuple(call.node.attr("dtypes", []))
    return direct(call, checkpoints.restore_v2, *call.values, dtypes=dtypes).outputs


@rule("ShardedFilename")
def _sharded_filename(call: Call) -> Any:
    ending = f"-{call.known(1):05d}-of-{call.known(2):05d}"
    return string_concat([call[0], constant(np.array(ending.encode(), object))])


@rule("MergeV2Checkpoints")
def _merge_checkpoints(call: Call) -> Any:
    parts, destination = call.values
    return direct(call, checkpoints.merge_v2_checkpoints, destination, *unstack(parts))


def _keyed(call: Call, state: Any) -> Any:
    """A draw from a state that the graph computes: the same numbers for the same."""
    draw = {
        "Uniform": draws.random_uniform,
        "Normal": draws.random_normal,
        "TruncatedNormal": draws.random_truncated_normal,
    }[call.node.op.removeprefix("StatelessRandom").removeprefix("Stateless").removesuffix("V2")]
    return draw(state, call[0], dtype=call.node.attr("dtype", "float32"))


@rule("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal")
def _by_seed(call: Call) -> Any:
    zeros = constant(np.zeros(2, np.uint32))
    return _keyed(call, concat([cast(call[1], "uint32"), zeros], 0))


@rule("StatelessRandomGetKeyCounter")
def _key_counter(call: Call) -> Any:
    """A key of one number and a counter of two: here the seed, and zeros."""
    seed = cast(call[0], "uint64")
    return [seed[:1], concat([seed[1:2], constant(np.zeros(1, np.uint64))], 0)]


@rule("StatelessRandomGetAlg")
def _algorithm(call: Call) -> Any:
    return constant(np.array(1, np.int32))  # Philox


@rule("StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2")
def _by_key(call: Call) -> Any:
    numbers = concat([call[1], call[2], constant(np.zeros(1, np.uint64))], 0)
    return _keyed(call, cast(numbers, "uint32"))


@rule("StringJoin")
def _string_join(call: Call) -> Any:
    separator = constant(np.array(call.node.attr("separator", b""), object))
    parts = [x for value in call.values for x in (separator, value)]
    return string_concat(parts[1:])


@rule("StaticRegexFullMatch")
def _matches(call: Call) -> Any:
    return lookup("RegexFullMatch")(call[0], pattern=call.node.text("pattern"))


# Summaries


def _summaries(name: str, kind: str, **options: tuple[str, Any]) -> None:
    """Options are given as (attribute of the node, its default)."""

    @rule(name)
    def summary(call: Call) -> Any:
        tag, *values = call.values
        known = tag.op.attrs.get("value") if tag.op.type == "Const" else None
        if not isinstance(known, np.ndarray) or known.size != 1:
            raise UnimplementedError("a summary's tag is a constant here")
        given = tuple(
            (own, call.node.attr(key, default)) for own, (key, default) in options.items()
        )
        return summaries.MESSAGES[kind](
            *values, kind=kind, tag=known.item().decode(errors="replace"), options=given
        )


_summaries("ScalarSummary", "scalar")
_summaries("HistogramSummary", "histogram")
_summaries("ImageSummary", "image", max_outputs=("max_images", 3))
_summaries("AudioSummaryV2", "audio", max_outputs=("max_outputs", 3))


@rule("MergeSummary")
def _merge_summary(call: Call) -> Any:
    return lookup("MergeSummary")(*call.values)


@rule("Assert")
def _assert(call: Call) -> Any:
    condition, *data = call.values
    return group(check(condition, "an assertion of the graph", data), name=f"{call.name}/")
