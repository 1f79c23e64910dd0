"""Send and Recv, which join the parts of a graph, and the 16-bit form in which floats may travel.

They stand in graphs that were cut into parts (`passes/partition.py`); users do not write them.
"""

from __future__ import annotations

from typing import Any

from ...graph import ANY, Array, TensorShape, TensorSpec, as_dtype, float32, uint16
from ..control.dataflow import DEAD
from .registry import define, no_gradient
from .traits import Traits, Work

_HANDED_ON = Traits(work=Work.NONE)


@define("Send", dtypes=ANY, stateful=True, takes_dead=True, tagged=True, traits=_HANDED_ON)
def send(
    x: TensorSpec,
    *,
    tensor_name: str,
    send_device: str,
    send_device_incarnation: int,
    recv_device: str,
) -> tuple[TensorSpec, ...]:
    """Bring `x`, or the news that it is dead, to the rendezvous of the step for `recv_device`."""
    return ()


@send.effect
def _send_kernel(
    context: Any,
    x: Any,
    *,
    tensor_name: str,
    send_device: str,
    send_device_incarnation: int,
    recv_device: str,
) -> tuple[Any, ...]:
    key = context.key(send_device, send_device_incarnation, recv_device, tensor_name)
    context.rendezvous.send(key, None if x is DEAD else x, is_dead=x is DEAD)
    return ()


send.grad(no_gradient)


@define("Recv", stateful=True, tagged=True, traits=_HANDED_ON)
def recv(
    *,
    shape: TensorShape,
    dtype: str,
    tensor_name: str,
    send_device: str,
    send_device_incarnation: int,
    recv_device: str,
) -> TensorSpec:
    """What `send_device` sends under that name."""
    return TensorSpec(shape, as_dtype(dtype))


@recv.asynchronous
def _recv_kernel(
    context: Any,
    done: Any,
    *,
    shape: TensorShape,
    dtype: str,
    tensor_name: str,
    send_device: str,
    send_device_incarnation: int,
    recv_device: str,
) -> None:
    # An error of this part reaches the rendezvous only when all of its kernels have ended.
    token = context.cancellation.register(done.fail)
    if token is None:
        done.fail(context.cancelled)
        return

    def arrived(arrival: Any) -> None:
        if not context.cancellation.deregister(token):
            return  # the step stops, and the kernel has ended with that
        if arrival.error is not None:
            done.fail(arrival.error)
        else:
            done(DEAD if arrival.is_dead else arrival.value)

    key = context.key(send_device, send_device_incarnation, recv_device, tensor_name)
    context.rendezvous.recv_async(key, arrived)


recv.grad(no_gradient)


@define("UpperHalf", dtypes=frozenset({float32}))
def upper_half(x: TensorSpec) -> TensorSpec:
    """The upper 16 bits of each float32: sign, exponent, 7 bits of mantissa, cut off.

    What is lost makes a number smaller, by less than 2**-7 of it. A NaN stays one.

    Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
        arXiv:1603.04467, section 5.5.
    """
    return TensorSpec(x.shape, uint16)


@upper_half.reference
def _upper_half_kernel(xp: Any, x: Array) -> Array:
    half = (xp.ascontiguousarray(x).view("uint32") >> 16).astype("uint16").reshape(x.shape)
    # A NaN whose mantissa is all in the lower half would become infinity.
    return xp.where(x != x, half | xp.asarray(0x40, "uint16"), half)


upper_half.grad(no_gradient)


@define("FromUpperHalf", dtypes=frozenset({uint16}))
def from_upper_half(x: TensorSpec) -> TensorSpec:
    """The float32 numbers whose upper 16 bits are `x` and whose lower ones are 0."""
    return TensorSpec(x.shape, float32)


@from_upper_half.reference
def _from_upper_half_kernel(xp: Any, x: Array) -> Array:
    bits = xp.ascontiguousarray(x).astype("uint32") << 16
    return bits.view("float32").reshape(x.shape)


from_upper_half.grad(no_gradient)
