"""Fused passes over the non-zeros of sparse data, for likelihoods that are linear in λ at zeros.

The data are compressed rows, once with a row per feature and once with a row per step. Either way
a row reads short contiguous rows and writes only to its own, so threads can share the rows, and
one kernel serves W and H:

    A[i] = Σ_j y_j a_ij,   λ_ij = x_i · y_j,

with X = W, Y = Hᵀ by feature and X = Hᵀ, Y = W by step, both C-ordered, and a as in `dense.py`.
Code is unrolled for up to `UNROLLED` components. Loops over non-zeros are not vectorized: vector
instructions that load from scattered places made them two to five times slower.
"""

from functools import cache

from .dense import UNROLLED, Formulas, Kernel, generated, in_order, specialised
from .floor import FLOOR
from .handoff import begin, end


@cache
def sparse_pass(K: int, formulas: Formulas) -> Kernel:
    """The compiled pass for K components.

    Its arguments are (flags, thread, first, last) for `Threads.run`, then (indptr, indices, values,
    weights, X, Y, theta, bounds, A). It writes the rows from bounds[first] to bounds[last] of A.
    Weights are (nnz,), or (1,) where all are the same or the formulas do not read them.
    """
    ratios_of = formulas.at_nonzeros or formulas.ratios
    if K > UNROLLED:
        return specialised(_any_pass, f"_pass_{formulas.name}", in_order, ratios=ratios_of)
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
    return generated(name, lines, __file__, __name__, in_order, ratios=ratios_of)


@cache
def sparse_value(formulas: Formulas) -> Kernel:
    """The compiled pass that sets its last argument, (ranges,), to −Σ gain over each range."""
    return specialised(_value, f"_value_{formulas.name}", in_order, gain=formulas.gain)


# Placeholders: `specialised` replaces them by the formulas of the likelihood.
def ratios(*entry): ...


def gain(*entry): ...


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
