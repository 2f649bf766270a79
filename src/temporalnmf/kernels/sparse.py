"""A fused pass over the non-zeros of sparse counts (Poisson only: zeros need a rate, not a log).

The counts come as the three arrays of compressed rows, holding m·v, once with a row per feature
and once with a row per step. Either way a row gathers what it needs from short contiguous rows
and writes only to its own, so rows can be shared out among threads and one kernel serves W and H:

    A[i] = Σ_j y_j v_ij / λ_ij,   λ_ij = x_i · y_j,

with X = W, Y = Hᵀ by feature and X = Hᵀ, Y = W by step, both C-ordered.

As in `dense.py`, code is written out for up to `UNROLLED` components and loops above.
"""

from collections.abc import Callable
from functools import cache

from .dense import UNROLLED, compiled, generated
from .floor import FLOOR
from .handoff import begin, end
from .logarithm import log


@cache
def sparse_pass(K: int) -> Callable[..., None]:
    """The compiled pass for K components.

    Its arguments are (flags, thread, first, last) for `Workers.run`, then (indptr, indices,
    counts, X, Y, bounds, A). It writes the rows from bounds[first] to bounds[last] of A.
    """
    if K > UNROLLED:
        return _any_pass
    ks = range(K)
    name = f"_pass_{K}"
    lines = [
        f"def {name}(flags, thread, first, last, indptr, indices, counts, X, Y, bounds, A):",
        " begin(flags, thread)",
        " for i in range(bounds[first], bounds[last]):",
        *(f"  x{k} = X[i, {k}]" for k in ks),
        *(f"  s{k} = 0.0" for k in ks),
        "  for j in range(indptr[i], indptr[i + 1]):",
        "   n = indices[j]",
        *(f"   y{k} = Y[n, {k}]" for k in ks),
        f"   a = counts[j] / max({' + '.join(f'x{k} * y{k}' for k in ks)}, FLOOR)",
        *(f"   s{k} += y{k} * a" for k in ks),
        *(f"  A[i, {k}] = s{k}" for k in ks),
        " end(flags, thread)",
    ]
    return generated(name, lines, __file__, __name__)


@compiled
def _rate(x, y):
    total = 0.0
    for k in range(x.size):
        total += x[k] * y[k]
    return max(total, FLOOR)


@compiled
def _any_pass(flags, thread, first, last, indptr, indices, counts, X, Y, bounds, A):
    begin(flags, thread)
    for i in range(bounds[first], bounds[last]):
        x, out = X[i], A[i]
        out[:] = 0.0
        for j in range(indptr[i], indptr[i + 1]):
            y = Y[indices[j]]
            a = counts[j] / _rate(x, y)
            for k in range(x.size):
                out[k] += y[k] * a
    end(flags, thread)


@compiled
def sparse_value(flags, thread, first, last, indptr, indices, counts, X, Y, bounds, values):
    """values[s] = −Σ v log λ over the rows of shard s."""
    begin(flags, thread)
    for shard in range(first, last):
        total = 0.0
        for i in range(bounds[shard], bounds[shard + 1]):
            for j in range(indptr[i], indptr[i + 1]):
                total -= counts[j] * log(_rate(X[i], Y[indices[j]]))
        values[shard] = total
    end(flags, thread)
