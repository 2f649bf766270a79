"""Fused passes over dense data, for any likelihood.

Shapes and order: `V` (F, N) and `W` (F, K) are Fortran-ordered, so the features of one time step
and of one component are contiguous; `H` is (K, N). The likelihood's `weigh` computes `V` and the
weights `M` from the data; `M` is (1, N) if weights do not depend on the feature, else (F, N),
Fortran-ordered. `steps` lists the steps with an observed entry; the others are never read.

Passes are given the transposes of these arrays (`VT` …), which are C-ordered whatever their shape:
numba would take one of a single feature or component for C-ordered, too, and compile once more.

Every statistic of the majorizer (M) is a sum, over features for H and over steps for W, of w or h
times a or b, which the likelihood's `Formulas` compute from v, m and λ of an entry. Sums of b that
need no pass (`linear`, weights per step) are left to the caller.

Arithmetic has the precision of W and H; in single precision, sums over more than one block of
features and a few steps are in double precision.

A pass divides the features into ranges, whose sums for H the caller adds up in order, so that the
result does not depend on the number of threads. Inside a range, blocks of features stay in the
cache while the steps are read.

Up to `UNROLLED` components, passes are unrolled for their K, so that λ, a, b and the sums are in
registers: `_source` generates this code. Above, `blocks_pass` works with buffers of a block, four
components at a time. Both are compiled once per likelihood. The compiled formulas are globals of
the pass: for arguments or closure variables, numba would compile again in each process.
"""

from collections.abc import Callable
from functools import cache, partial
from types import FunctionType
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit

from .floor import FLOOR
from .handoff import begin, end
from .logarithm import log

# Numbers of W that stay in the cache while the steps are read.
CACHED = 8192
# Features per block in passes that are not unrolled.
BLOCK = 512
UNROLLED = 8

# Re-association allows several partial sums in a loop; on one machine their order is fixed.
_FAST = {"reassoc", "contract"}
_IN_ORDER = {"contract"}


F = TypeVar("F", bound=Callable[..., object])
Kernel = Callable[..., None]


def compiled(function: F) -> F:
    """Compile on first use, cache the machine code, release the GIL."""
    return cast(F, njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)(function))


def in_order(function: F) -> F:
    """`compiled`, with sums in the order of the source: their loops are not vectorized."""
    return cast(F, njit(cache=True, nogil=True, error_model="numpy", fastmath=_IN_ORDER)(function))


class Formulas(NamedTuple):
    """Compiled formulas of an entry with value v, weight m and rate λ.

    `theta` (P,) holds the parameters of the likelihood. b − a is the derivative in λ of the
    entry's term of the objective.
    """

    name: str  # in the names of compiled functions
    ratios: Callable[..., tuple[float, float]]  # (v, m, lam, theta): a and b
    value: Callable[..., float]  # (v, m, lam, theta): the entry's term of the objective
    # (v, m, lam, theta): b λ − value, zero for v = 0; None where b depends on v or λ
    gain: Callable[..., float] | None = None
    # Whether a vectorized loop for the formulas alone pays at non-zeros
    costly: bool = False

    @property
    def linear(self) -> bool:
        """Whether b is m times a constant, so that sums of b need no pass over the data."""
        return self.gain is not None


def generated(
    name: str,
    lines: list[str],
    file: str,
    module: str,
    compiler: Callable[[Kernel], Kernel] = compiled,
    **names: object,
) -> Kernel:
    """Compile a function from the lines of its source, with `names` among its globals.

    Its file and module are set to the given ones, under which numba caches the machine code.
    """
    namespace: dict[str, Any] = {
        "np": np, "log": log, "begin": begin, "end": end, "FLOOR": FLOOR, "__name__": module,
    }  # fmt: skip
    namespace |= names
    exec(compile("\n".join(lines), file, "exec"), namespace)
    return compiler(namespace[name])


def specialised(
    function: Kernel,
    name: str,
    compiler: Callable[[Kernel], Kernel] = compiled,
    **names: object,
) -> Kernel:
    """Compile a copy of a function under another name, with some of its globals replaced."""
    assert isinstance(function, FunctionType)
    code = function.__code__.replace(co_name=name, co_qualname=name)
    return compiler(FunctionType(code, function.__globals__ | names, name))


@cache
def dense_pass(
    K: int, formulas: Formulas, entries: bool, wants: str, in_blocks: Formulas | None = None
) -> Kernel:
    """The compiled pass for K components.

    Parameters
    ----------
    K : int
    formulas : Formulas
        Of the likelihood.
    entries : bool
        Whether weights are given per entry.
    wants : str
        What to sum: any of "w" (WA, WB), "h" (HA, HB), "v" (the value).
    in_blocks : Formulas, default=None
        Formulas for passes that are not unrolled, if they differ in rounding.

    Returns
    -------
    callable
        With arguments (flags, thread, first, last) for `Threads.run`, then (VT, MT, WT, H, theta,
        steps, bounds, WAT, WBT, HA, HB, values). Range s covers features bounds[s] to
        bounds[s+1]. It sets its columns of WAT and WBT (K, F), HA[s] and HB[s] (K, N) and
        values[s], for first ≤ s < last.
    """
    sums_b = entries or not formulas.linear
    if K > UNROLLED:
        return partial(
            _any_pass(in_blocks or formulas),
            entries,
            sums_b,
            "w" in wants,
            "h" in wants,
            "v" in wants,
        )
    name = f"_pass_{formulas.name}_{K}_{'entries' if entries else 'steps'}_{wants}"
    lines = _source(name, K, entries, sums_b, wants)
    names = {"ratios": formulas.ratios, "value_of": formulas.value}
    return generated(name, lines, __file__, __name__, compiled, **names)


@cache
def _any_pass(formulas: Formulas) -> Kernel:
    """The compiled pass for any number of components."""
    names = {"ratios": formulas.ratios, "value_of": formulas.value}
    return specialised(blocks_pass, f"_pass_{formulas.name}", compiled, **names)


def _source(name: str, K: int, entries: bool, sums_b: bool, wants: str) -> list[str]:
    """Source of one pass.

    Several steps (j = 0, 1, …) are processed together, so that each w is loaded, and each sum for W
    stored, once for all of them. The last group is filled up with empty columns.
    """
    ks, js, block = range(K), range(_together(K, wants)), CACHED // K
    in_w, in_h, in_v = "w" in wants, "h" in wants, "v" in wants
    lines = [
        f"def {name}(flags, thread, first, last,",
        "  VT, MT, WT, H, theta, steps, bounds, WAT, WBT, HA, HB, values):",
        " begin(flags, thread)",
        " V, M, W, WA, WB = VT.T, MT.T, WT.T, WAT.T, WBT.T",
        " floor, zero = W.dtype.type(FLOOR), W.dtype.type(0)",
        f" nothing = np.zeros((1, {block}), dtype=V.dtype).T",
        " for s in range(first, last):",
        "  value = 0.0",
        *(["  HA[s] = 0.0"] if in_h else []),
        *(["  HB[s] = 0.0"] if in_h and sums_b else []),
        f"  parts = (bounds[s + 1] - bounds[s] + {block - 1}) // {block}",
        "  for part in range(parts):",
        "   start = bounds[s] + part * (bounds[s + 1] - bounds[s]) // parts",
        "   stop = bounds[s] + (part + 1) * (bounds[s + 1] - bounds[s]) // parts",
        *(f"   w{k} = W[start:stop, {k}]" for k in ks),
        *(f"   wa{k} = WA[start:stop, {k}]" for k in ks if in_w),
        *(f"   wb{k} = WB[start:stop, {k}]" for k in ks if in_w and sums_b),
        *(f"   wa{k}[:] = 0.0" for k in ks if in_w),
        *(f"   wb{k}[:] = 0.0" for k in ks if in_w and sums_b),
        f"   for group in range(0, steps.size, {len(js)}):",
        *(line for j in js for line in _load_step(j, K, entries, in_h)),
        "    for i in range(v0.size):",
        *(f"     w{k}i = w{k}[i]" for k in ks),
    ]
    for j in js:
        entry = f"v{j}[i], {f'm{j}[i]' if entries else f'm{j}'}, l{j}, theta"
        lines += [
            f"     l{j} = {' + '.join(f'h{k}{j} * w{k}i' for k in ks)}",
            f"     l{j} = l{j} if l{j} > floor else floor",
            *([f"     a{j}, b{j} = ratios({entry})"] if in_w or in_h else []),
            *([f"     value += value_of({entry})"] if in_v else []),
        ]
    for k in ks:
        if in_h:
            lines += [f"     s{k}{j} += w{k}i * a{j}" for j in js]
            lines += [f"     t{k}{j} += w{k}i * b{j}" for j in js if sums_b]
        if in_w:
            lines += [f"     wa{k}[i] += {' + '.join(f'h{k}{j} * a{j}' for j in js)}"]
        if in_w and sums_b:
            lines += [f"     wb{k}[i] += {' + '.join(f'h{k}{j} * b{j}' for j in js)}"]
    for j in js if in_h else ():
        lines += [f"    if there{j}:"]
        lines += [f"     HA[s, {k}, n{j}] += s{k}{j}" for k in ks]
        lines += [f"     HB[s, {k}, n{j}] += t{k}{j}" for k in ks if sums_b]
    lines += ["  values[s] = value"] if in_v else []
    return [*lines, " end(flags, thread)"]


def _load_step(j: int, K: int, entries: bool, in_h: bool) -> list[str]:
    """Source that loads the j-th step of a group."""
    column, empty = f"[start:stop, n{j}]", "nothing[: stop - start, 0]"
    weight = (f"M{column}", empty) if entries else (f"M[0, n{j}]", "zero")
    return [
        f"    there{j} = group + {j} < steps.size",
        f"    n{j} = steps[group + {j}] if there{j} else 0",
        f"    v{j} = V{column} if there{j} else {empty}",
        f"    m{j} = {weight[0]} if there{j} else {weight[1]}",
        *(f"    h{k}{j} = H[{k}, n{j}]" for k in range(K)),
        *(f"    s{k}{j} = t{k}{j} = zero" for k in range(K) if in_h),
    ]


def _together(K: int, wants: str) -> int:
    """Steps to process together: the fastest number on NIPS, with 16 vector registers."""
    if wants == "wh":
        return 2 if K < 4 else 4
    if wants == "w":
        return 3 if K < 5 else 4
    return 1


# Loops run over slices from zero: an index that might be negative would prevent vectorization.


@compiled
def _mix(W, H, n, start, lam):
    """λ of one block of features at step n, floored."""
    size, K = lam.size, H.shape[0]
    lam[:] = 0.0
    stop = start + size
    for k in range(0, K - 3, 4):
        w0, w1 = W[start:stop, k], W[start:stop, k + 1]
        w2, w3 = W[start:stop, k + 2], W[start:stop, k + 3]
        h0, h1, h2, h3 = H[k, n], H[k + 1, n], H[k + 2, n], H[k + 3, n]
        for i in range(size):
            lam[i] += h0 * w0[i] + h1 * w1[i] + h2 * w2[i] + h3 * w3[i]
    for k in range(K - K % 4, K):
        w0, h0 = W[start:stop, k], H[k, n]
        for i in range(size):
            lam[i] += h0 * w0[i]
    for i in range(size):
        lam[i] = lam[i] if lam[i] > FLOOR else FLOOR


@compiled
def _project(W, start, a, out, n):
    """Add Σ_f w a over one block to column n of out (K, N)."""
    size, K = a.size, W.shape[1]
    stop = start + size
    for k in range(0, K - 3, 4):
        w0, w1 = W[start:stop, k], W[start:stop, k + 1]
        w2, w3 = W[start:stop, k + 2], W[start:stop, k + 3]
        s0 = s1 = s2 = s3 = 0.0
        for i in range(size):
            s0 += w0[i] * a[i]
            s1 += w1[i] * a[i]
            s2 += w2[i] * a[i]
            s3 += w3[i] * a[i]
        out[k, n] += s0
        out[k + 1, n] += s1
        out[k + 2, n] += s2
        out[k + 3, n] += s3
    for k in range(K - K % 4, K):
        w0, s0 = W[start:stop, k], 0.0
        for i in range(size):
            s0 += w0[i] * a[i]
        out[k, n] += s0


@compiled
def _spread(H, n, a, out, start):
    """Add h a, for every component, to one block of out (F, K)."""
    size = a.size
    for k in range(H.shape[0]):
        o, h = out[start : start + size, k], H[k, n]
        for i in range(size):
            o[i] += h * a[i]


# Placeholders: `specialised` replaces them by the formulas of the likelihood.
def ratios(*entry): ...


def value_of(*entry): ...


def blocks_pass(
    entries, sums_b, in_w, in_h, in_v,
    flags, thread, first, last, VT, MT, WT, H, theta, steps, bounds, WAT, WBT, HA, HB, values,
):  # fmt: skip
    """`dense_pass` for any K, with its options as arguments. `_any_pass` compiles it."""
    begin(flags, thread)
    V, M, W, WA, WB = VT.T, MT.T, WT.T, WAT.T, WBT.T
    buffers = np.empty((4, BLOCK))
    for s in range(first, last):
        if in_h:
            HA[s] = 0.0
        if in_h and sums_b:
            HB[s] = 0.0
        for start in range(bounds[s], bounds[s + 1], BLOCK):
            stop = min(start + BLOCK, bounds[s + 1])
            size = stop - start
            if in_w:
                WA[start:stop] = 0.0
            if in_w and sums_b:
                WB[start:stop] = 0.0
            lam, a, b, m = (
                buffers[0, :size], buffers[1, :size], buffers[2, :size], buffers[3, :size],
            )  # fmt: skip
            for n in steps:
                v = V[start:stop, n]
                m[:] = M[start:stop, n] if entries else M[:1, n]
                _mix(W, H, n, start, lam)
                if in_w or in_h:
                    for i in range(size):
                        a[i], b[i] = ratios(v[i], m[i], lam[i], theta)
                if in_h:
                    _project(W, start, a, HA[s], n)
                if in_h and sums_b:
                    _project(W, start, b, HB[s], n)
                if in_w:
                    _spread(H, n, a, WA, start)
                if in_w and sums_b:
                    _spread(H, n, b, WB, start)
                if in_v:
                    total = 0.0
                    for i in range(size):
                        total += value_of(v[i], m[i], lam[i], theta)
                    values[s] += total
    end(flags, thread)
