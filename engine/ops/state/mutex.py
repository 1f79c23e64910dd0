"""Mutexes as ops: acquire, release.

The holder of a mutex is a lease, which MutexAcquire gives as a tensor. A step that fails or is
cancelled while it holds one gives it back.

Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
    arXiv:1603.04467, table 1.
"""

from __future__ import annotations

from typing import Any

from ...errors import LaminarError
from ...graph import TensorSpec, bool_, resource
from ...resources.mutexes import Lease, Mutex
from ..core.effects import HANDLE, held, wait
from ..core.op_def import KernelContext
from ..core.registry import define, no_gradient


@define("Mutex", stateful=True)
def mutex(*, container: str, shared_name: str) -> TensorSpec:
    """The handle of a mutex."""
    return TensorSpec((), resource)


@mutex.effect
def _mutex_kernel(context: KernelContext, *, container: str, shared_name: str) -> Mutex:
    return held(context, container, shared_name, Mutex, (), lambda: Mutex(shared_name))


@define("MutexAcquire", dtypes={"mutex": HANDLE})
def mutex_acquire(mutex: TensorSpec) -> TensorSpec:
    """Wait until the mutex is free, and take it; a handle of the lease."""
    return TensorSpec((), resource)


@mutex_acquire.asynchronous
def _acquire_kernel(context: KernelContext, done: Any, mutex: Mutex) -> None:
    def finish(lease: Lease) -> Lease:
        def give_back(error: LaminarError) -> None:
            lease.release()

        token = context.cancellation.register(give_back)
        if token is None:
            lease.release()
        lease.on_end = lambda: context.cancellation.deregister(token)
        return lease

    wait(context, done, mutex.acquire, finish)


@define("MutexRelease", dtypes={"lease": HANDLE})
def mutex_release(lease: TensorSpec) -> tuple[TensorSpec, ...]:
    """Give a mutex back; nothing when the lease has ended."""
    return ()


@mutex_release.effect
def _release_kernel(context: KernelContext, lease: Lease) -> Any:
    lease.release()
    return ()


@define("MutexIsHeld", dtypes={"mutex": HANDLE}, read_only=True)
def mutex_is_held(mutex: TensorSpec) -> TensorSpec:
    """Whether someone holds the mutex."""
    return TensorSpec((), bool_)


@mutex_is_held.effect
def _is_held_kernel(context: KernelContext, mutex: Mutex) -> bool:
    return mutex.is_held


for _op in (mutex, mutex_acquire, mutex_release, mutex_is_held):
    _op.grad(no_gradient)
