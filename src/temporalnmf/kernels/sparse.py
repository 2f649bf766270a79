"""Fused passes over the non-zeros of sparse data, for likelihoods that are linear in λ at zeros.

The data are compressed rows, once with a row per feature and once with a row per step. Either way
a row reads short contiguous rows and writes only to its own, so threads can share the rows, and
one kernel serves W and H:

    A[i] = Σ_j y_j a_ij,   λ_ij = x_i · y_j,

with X = W, Y = Hᵀ by feature and X = Hᵀ, Y = W by step, both C-ordered, and a as in `dense.py`.
Code is unrolled for up to `UNROLLED` components. Loops over non-zeros are not vectorized: vector
instructions that load from scattered places made them two to five times slower. Where the
formulas are `costly`, rates of some non-zeros are stored, then replaced by a in a vectorized loop.
"""

from functools import cache

import numpy as np

from .dense import UNROLLED, Formulas, Kernel, compiled, generated, in_order, specialised
from .floor import FLOOR
from .handoff import begin, end

# Non-zeros whose rates are stored together.
STORED = 512


@cache
def sparse_pass(K: int, formulas: Formulas) -> Kernel:
    """The compiled pass for K components.

    Its arguments are (flags, thread, first, last) for `Threads.run`, then (indptr, indices, values,
    weights, X, Y, theta, bounds, A). It writes the rows from bounds[first] to bounds[last] of A.
    Weights are (nnz,), or (1,) where all are the same or the formulas do not read them.
    """
    if formulas.costly:
        return _stored_pass(min(K, UNROLLED + 1), formulas)
    if K > UNROLLED:
        return specialised(_any_pass, f"_pass_{formulas.name}", in_order, ratios=formulas.ratios)
    ks = range(K)
    name = f"_pass_{formulas.name}_{K}"
    lines = [
        f"def {name}(flags, thread, first, last,",
        "  indptr, indices, values, weights, X, Y, theta, bounds, A):",
        " begin(flags, thread)",
        " each = weights.size > 1",
        " for i in range(bounds[first], bounds[last]):",
        *(f"  x{k} = X[i, {k}]" for k in ks),
        *(f"  s{k} = 0.0" for k in ks),
        "  for j in range(indptr[i], indptr[i + 1]):",
        "   n = indices[j]",
        *(f"   y{k} = Y[n, {k}]" for k in ks),
        f"   lam = max({' + '.join(f'x{k} * y{k}' for k in ks)}, FLOOR)",
        "   a, _ = ratios(values[j], weights[j if each else 0], lam, theta)",
        *(f"   s{k} += y{k} * a" for k in ks),
        *(f"  A[i, {k}] = s{k}" for k in ks),
        " end(flags, thread)",
    ]
    return generated(name, lines, __file__, __name__, in_order, ratios=formulas.ratios)


@cache
def _stored_pass(K: int, formulas: Formulas) -> Kernel:
    """`sparse_pass` that stores the rates of some rows; with K above `UNROLLED`, for any K."""
    ks, name = range(K), f"_pass_{formulas.name}_{K}"
    x, y = [f"x{k} = X[i, {k}]" for k in ks], [f"y{k} = Y[n, {k}]" for k in ks]
    rate = f"max({' + '.join(f'x{k} * y{k}' for k in ks)}, FLOOR)"
    zero = [f"s{k} = 0.0" for k in ks]
    add, result = [f"s{k} += y{k} * a" for k in ks], [f"A[i, {k}] = s{k}" for k in ks]
    if K > UNROLLED:
        x, y, rate, zero, result = ["x = X[i]"], ["y = Y[n]"], "rate(x, y)", ["A[i] = 0.0"], []
        add = ["for k in range(x.size):", " A[i, k] += y[k] * a"]
    lines = [
        f"def {name}(flags, thread, first, last,",
        "  indptr, indices, values, weights, X, Y, theta, bounds, A):",
        " begin(flags, thread)",
        " store, row, s = np.empty(STORED), bounds[first], first",
        " while row < bounds[last]:",
        # Stored rows are of one range: results do not depend on the ranges of a thread.
        "  while row >= bounds[s + 1]:",
        "   s += 1",
        "  start, after = indptr[row], rows_until(indptr, row, bounds[s + 1])",
        "  size = indptr[after] - start",
        "  if size > store.size:",
        "   store = np.empty(size)",
        "  for i in range(row, after):",
        *(f"   {line}" for line in x),
        "   for j in range(indptr[i], indptr[i + 1]):",
        "    n = indices[j]",
        *(f"    {line}" for line in y),
        f"    store[j - start] = {rate}",
        "  fill(values[start : start + size], weights, start, theta, store[:size])",
        "  for i in range(row, after):",
        *(f"   {line}" for line in (x if K > UNROLLED else []) + zero),
        "   for j in range(indptr[i], indptr[i + 1]):",
        "    n, a = indices[j], store[j - start]",
        *(f"    {line}" for line in [*y, *add]),
        *(f"   {line}" for line in result),
        "  row = after",
        " end(flags, thread)",
    ]
    fill = specialised(_fill_ratios, f"_fill_{formulas.name}", in_order, ratios=formulas.ratios)
    names = {"fill": fill, "rate": _rate, "rows_until": _rows_until, "STORED": STORED}
    return generated(name, lines, __file__, __name__, in_order, **names)


@in_order
def _rows_until(indptr, row, last):
    """The end of some rows from `row` on with up to `STORED` non-zeros, or of a longer one."""
    after = row + 1
    while after < last and indptr[after + 1] - indptr[row] <= STORED:
        after += 1
    return after


@cache
def sparse_value(formulas: Formulas) -> Kernel:
    """The compiled pass that sets its last argument, (ranges,), to −Σ gain over each range."""
    name = f"_value_{formulas.name}"
    if formulas.costly:
        gains = specialised(_sum_of_gains, f"_gains_{formulas.name}", compiled, gain=formulas.gain)
        return specialised(_stored_value, name, in_order, gains=gains)
    return specialised(_value, name, in_order, gain=formulas.gain)


# Placeholders: `specialised` replaces them by the formulas of the likelihood.
def ratios(*entry): ...


def gain(*entry): ...


def gains(*entries): ...


@in_order
def _rate(x, y):
    total = 0.0
    for k in range(x.size):
        total += x[k] * y[k]
    return max(total, FLOOR)


def _any_pass(
    flags, thread, first, last, indptr, indices, values, weights, X, Y, theta, bounds, A
):  # fmt: skip
    begin(flags, thread)
    each = weights.size > 1
    for i in range(bounds[first], bounds[last]):
        x, out = X[i], A[i]
        out[:] = 0.0
        for j in range(indptr[i], indptr[i + 1]):
            y = Y[indices[j]]
            a, _ = ratios(values[j], weights[j if each else 0], _rate(x, y), theta)
            for k in range(x.size):
                out[k] += y[k] * a
    end(flags, thread)


def _value(
    flags, thread, first, last, indptr, indices, values, weights, X, Y, theta, bounds, sums
):  # fmt: skip
    begin(flags, thread)
    each = weights.size > 1
    for s in range(first, last):
        total = 0.0
        for i in range(bounds[s], bounds[s + 1]):
            for j in range(indptr[i], indptr[i + 1]):
                m = weights[j if each else 0]
                total -= gain(values[j], m, _rate(X[i], Y[indices[j]]), theta)
        sums[s] = total
    end(flags, thread)


def _fill_ratios(v, weights, start, theta, rates):
    """Replace rates by a."""
    if weights.size > 1:
        m = weights[start : start + v.size]
        for j in range(v.size):
            rates[j], _ = ratios(v[j], m[j], rates[j], theta)
    else:
        m0 = weights[0]
        for j in range(v.size):
            rates[j], _ = ratios(v[j], m0, rates[j], theta)


def _sum_of_gains(v, weights, start, theta, rates):
    """Σ gain at these rates, which are overwritten."""
    if weights.size > 1:
        m = weights[start : start + v.size]
        for j in range(v.size):
            rates[j] = gain(v[j], m[j], rates[j], theta)
    else:
        m0 = weights[0]
        for j in range(v.size):
            rates[j] = gain(v[j], m0, rates[j], theta)
    total = 0.0
    for j in range(v.size):
        total += rates[j]
    return total


def _stored_value(
    flags, thread, first, last, indptr, indices, values, weights, X, Y, theta, bounds, sums
):  # fmt: skip
    begin(flags, thread)
    store = np.empty(STORED)
    for s in range(first, last):
        total, row = 0.0, bounds[s]
        while row < bounds[s + 1]:
            start, after = indptr[row], _rows_until(indptr, row, bounds[s + 1])
            size = indptr[after] - start
            if size > store.size:
                store = np.empty(size)
            for i in range(row, after):
                for j in range(indptr[i], indptr[i + 1]):
                    store[j - start] = _rate(X[i], Y[indices[j]])
            total -= gains(values[start : start + size], weights, start, theta, store[:size])
            row = after
        sums[s] = total
    end(flags, thread)
