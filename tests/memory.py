"""How much memory something takes."""

from __future__ import annotations

import tracemalloc
from contextlib import contextmanager

import pyarrow as pa

MB = 1 << 20
_pools = []  # stay: what Arrow still holds has been taken from them


@contextmanager
def little_memory(most: int = 4 * MB):
    """Whoever is refused has not taken memory before, of Python or of Arrow."""
    usual = pa.default_memory_pool()
    _pools.append(pool := pa.proxy_memory_pool(usual))
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)
    assert peak < most, f"{peak:,} bytes were taken by Python"
    assert pool.max_memory() < most, f"{pool.max_memory():,} bytes were taken by Arrow"
