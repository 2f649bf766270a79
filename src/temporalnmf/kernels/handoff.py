"""Synchronization of the threads that share a pass, without the GIL.

Waking a sleeping thread takes 50 to 100 µs on a virtual machine, as long as half a pass over
small data. So between passes threads spin on a flag for about a millisecond; each kernel calls
`begin` and `end`. `flags[0]` counts the passes that have begun, `flags[8 t]` those that thread t
has finished (eight apart: one cache line each). Thread 0 is the caller's.
"""

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

LINE = 8
# Reads of a flag before giving up: about a millisecond.
PATIENCE = 1_000_000


def _address(context, builder, signature, arguments):
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return cgutils.get_item_pointer(
        context, builder, signature.args[0], array, [arguments[1]], wraparound=False
    )


@intrinsic
def _load(context, flags, index):
    def codegen(context, builder, signature, arguments):
        pointer = _address(context, builder, signature, arguments)
        return builder.load_atomic(pointer, "acquire", 8, typ=ir.IntType(64))

    return types.int64(flags, types.int64), codegen


@intrinsic
def _store(context, flags, index, number):
    def codegen(context, builder, signature, arguments):
        pointer = _address(context, builder, signature, arguments)
        builder.store_atomic(arguments[2], pointer, "release", 8)
        return context.get_dummy_value()

    return types.void(flags, types.int64, types.int64), codegen


@njit(cache=True, nogil=True)
def begin(flags, thread):
    """Signal from thread 0 that a pass has begun."""
    if thread == 0:
        _store(flags, 0, _load(flags, 0) + 1)


@njit(cache=True, nogil=True)
def end(flags, thread):
    """Wait, for a limited time: thread 0 until all have finished, the others for the next pass."""
    count = _load(flags, 0)
    if thread == 0:
        wait(flags, count)
    else:
        _store(flags, LINE * thread, count)
        for _ in range(PATIENCE):
            if _load(flags, 0) != count:
                return


@njit(cache=True, nogil=True)
def wait(flags, count):
    """Wait for a limited time; return whether all threads have finished pass `count`."""
    tries = 0
    for thread in range(1, flags.size // LINE):
        while _load(flags, LINE * thread) < count:
            tries += 1
            if tries > PATIENCE:
                return False
    return True
