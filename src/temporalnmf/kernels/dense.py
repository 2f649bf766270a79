"""Fused passes over dense data.

Shapes and order: `V` (F, N) and `W` (F, K) are Fortran-ordered, so the features of one time step
and of one component are contiguous; `H` is (K, N). `V` holds m·v. The weights `M` are (1, N)
where they do not depend on the feature, else (F, N), Fortran-ordered. `steps` lists the steps
with anything observed; the others are never looked at.

`power` is the exponent of the β-divergence behind the likelihood: 1 for Poisson
(Kullback–Leibler), 0 for the exponential law (Itakura–Saito). Every statistic of the majorizer
(M) is a sum, over features for H and over steps for W, of w or h times

    a = m v λ^(power−2)      b = m λ^(power−1)

Sums of b that need no pass (Poisson, weights per step) are left to the caller.

Arithmetic is that of W and H: in single precision, sums are taken so over one block of features
and a few steps, and in double precision beyond.

A pass cuts the features into shards, whose sums for H stay apart until the caller adds them up in
order. Threads take ranges of shards, so the result does not depend on how many there are.
Inside a shard, blocks of features stay in the cache while the steps go by.

Up to `UNROLLED` components, passes are written out for their K, so that λ, the ratios and the
sums live in registers: `_source` is the one place where this code is made. Above, `blocks_pass`
works with buffers of a block, four components at a time.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from numba import njit

from .floor import FLOOR
from .handoff import begin, end
from .logarithm import log

# Weights of W (numbers) that stay in the cache while the steps go by.
CACHED = 8192
# Features of a block where passes are not written out.
BLOCK = 512
UNROLLED = 8

# Re-association lets a loop keep several partial sums; for one machine their order is fixed.
_FAST = {"reassoc", "contract"}


def compiled(function: Any) -> Any:
    """Compile on first use, keep the machine code beside the file, let threads run."""
    return njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)(function)


def generated(name: str, lines: list[str], file: str, module: str) -> Any:
    """Compile a function from the lines of its source.

    It passes for part of the given file and module: that lets numba keep its machine code there.
    """
    namespace = {
        "np": np, "log": log, "begin": begin, "end": end, "FLOOR": FLOOR,
        "__name__": module,
    }  # fmt: skip
    exec(compile("\n".join(lines), file, "exec"), namespace)
    return compiled(namespace[name])


@cache
def dense_pass(K: int, power: int, entries: bool, wants: str) -> Callable[..., None]:
    """The compiled pass for K components.

    Parameters
    ----------
    K : int
    power : {0, 1}
    entries : bool
        Whether weights are given per entry.
    wants : str
        What to sum: any of "w" (WA, WB), "h" (HA, HB), "v" (the value).

    Returns
    -------
    callable
        With arguments (flags, thread, first, last) for `Workers.run`, then (V, M, W, H, steps,
        bounds, WA, WB, HA, HB, values). Shard s covers features bounds[s] to bounds[s+1]. It sets
        its rows of WA and WB (F, K), HA[s] and HB[s] (K, N) and values[s], for first ≤ s < last.
    """
    if K > UNROLLED:
        return partial(blocks_pass, power, entries, "w" in wants, "h" in wants, "v" in wants)
    name = f"_pass_{K}_{power}_{'entries' if entries else 'steps'}_{wants}"
    return generated(name, _source(name, K, power, entries, wants), __file__, __name__)


def _source(name: str, K: int, power: int, entries: bool, wants: str) -> list[str]:
    """Source of one pass.

    Several steps (j = 0, 1, …) go together, so that each w is loaded, and each sum for W stored,
    once for all of them. Where the number of steps is no multiple, the rest are empty columns.
    """
    ks, js, block = range(K), range(_together(K, wants)), CACHED // K
    sums_b = power == 0 or entries
    in_w, in_h, in_v = "w" in wants, "h" in wants, "v" in wants
    lines = [
        f"def {name}(flags, thread, first, last,",
        "  V, M, W, H, steps, bounds, WA, WB, HA, HB, values):",
        " begin(flags, thread)",
        " floor, zero, one = W.dtype.type(FLOOR), W.dtype.type(0), W.dtype.type(1)",
        f" nothing = np.zeros((1, {block}), dtype=V.dtype).T",
        " for shard in range(first, last):",
        "  value = 0.0",
        *(["  HA[shard] = 0.0"] if in_h else []),
        *(["  HB[shard] = 0.0"] if in_h and sums_b else []),
        f"  parts = (bounds[shard + 1] - bounds[shard] + {block - 1}) // {block}",
        "  for part in range(parts):",
        "   start = bounds[shard] + part * (bounds[shard + 1] - bounds[shard]) // parts",
        "   stop = bounds[shard] + (part + 1) * (bounds[shard + 1] - bounds[shard]) // parts",
        *(f"   w{k} = W[start:stop, {k}]" for k in ks),
        *(f"   wa{k} = WA[start:stop, {k}]" for k in ks if in_w),
        *(f"   wb{k} = WB[start:stop, {k}]" for k in ks if in_w and sums_b),
        *(f"   wa{k}[:] = 0.0" for k in ks if in_w),
        *(f"   wb{k}[:] = 0.0" for k in ks if in_w and sums_b),
        f"   for group in range(0, steps.size, {len(js)}):",
    ]
    for j in js:
        lines += [
            f"    there{j} = group + {j} < steps.size",
            f"    n{j} = steps[group + {j}] if there{j} else 0",
            f"    v{j} = V[start:stop, n{j}] if there{j} else nothing[: stop - start, 0]",
            f"    m{j} = M[start:stop, n{j}] if there{j} else nothing[: stop - start, 0]"
            if entries
            else f"    m{j} = M[0, n{j}] if there{j} else zero",
            *(f"    h{k}{j} = H[{k}, n{j}]" for k in ks),
            *(f"    s{k}{j} = t{k}{j} = zero" for k in ks if in_h),
        ]
    lines += ["    for i in range(v0.size):"]
    lines += [f"     w{k}i = w{k}[i]" for k in ks]
    for j in js:
        weight = f"m{j}[i]" if entries else f"m{j}"
        lines += [
            f"     l{j} = {' + '.join(f'h{k}{j} * w{k}i' for k in ks)}",
            f"     l{j} = l{j} if l{j} > floor else floor",
        ]
        if power == 1:
            lines += [f"     a{j} = v{j}[i] / l{j}", f"     b{j} = {weight}"]
            lines += [f"     value += {weight} * l{j} - v{j}[i] * log(l{j})"] if in_v else []
        else:
            lines += [f"     x{j} = one / l{j}", f"     a{j} = v{j}[i] * x{j}"]
            lines += [f"     value += a{j} + {weight} * log(l{j})"] if in_v else []
            lines += [f"     a{j} *= x{j}", f"     b{j} = {weight} * x{j}"]
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
        lines += [f"     HA[shard, {k}, n{j}] += s{k}{j}" for k in ks]
        lines += [f"     HB[shard, {k}, n{j}] += t{k}{j}" for k in ks if sums_b]
    lines += ["  values[shard] = value"] if in_v else []
    return [*lines, " end(flags, thread)"]


def _together(K: int, wants: str) -> int:
    """How many steps go together: what was fastest (NIPS, 16 vector registers)."""
    if wants == "wh":
        return 2 if K < 4 else 4
    if wants == "w":
        return 3 if K < 5 else 4
    return 1


# Loops run over slices from zero: an index that might be negative would keep them scalar.


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


@compiled
def _ratios(power, v, m, lam, a, b):
    """Both ratios of one block at one step."""
    if power == 1:
        for i in range(lam.size):
            a[i] = v[i] / lam[i]
            b[i] = m[i]
    else:
        for i in range(lam.size):
            a[i] = v[i] / (lam[i] * lam[i])
            b[i] = m[i] / lam[i]


@compiled
def _block_value(power, v, m, lam):
    total = 0.0
    if power == 1:
        for i in range(lam.size):
            total += m[i] * lam[i] - v[i] * log(lam[i])
    else:
        for i in range(lam.size):
            total += v[i] / lam[i] + m[i] * log(lam[i])
    return total


@compiled
def blocks_pass(
    power, entries, in_w, in_h, in_v,
    flags, thread, first, last, V, M, W, H, steps, bounds, WA, WB, HA, HB, values,
):  # fmt: skip
    """`dense_pass` for any K, with its choices as arguments."""
    begin(flags, thread)
    sums_b = power == 0 or entries
    buffers = np.empty((4, BLOCK))
    for shard in range(first, last):
        if in_h:
            HA[shard] = 0.0
        if in_h and sums_b:
            HB[shard] = 0.0
        for start in range(bounds[shard], bounds[shard + 1], BLOCK):
            stop = min(start + BLOCK, bounds[shard + 1])
            size = stop - start
            if in_w:
                WA[start:stop] = 0.0
            if in_w and sums_b:
                WB[start:stop] = 0.0
            lam, a, b, weights = (
                buffers[0, :size], buffers[1, :size], buffers[2, :size], buffers[3, :size],
            )  # fmt: skip
            for n in steps:
                v = V[start:stop, n]
                weights[:] = M[start:stop, n] if entries else M[:1, n]
                _mix(W, H, n, start, lam)
                if in_w or in_h:
                    _ratios(power, v, weights, lam, a, b)
                if in_h:
                    _project(W, start, a, HA[shard], n)
                if in_h and sums_b:
                    _project(W, start, b, HB[shard], n)
                if in_w:
                    _spread(H, n, a, WA, start)
                if in_w and sums_b:
                    _spread(H, n, b, WB, start)
                if in_v:
                    values[shard] += _block_value(power, v, weights, lam)
    end(flags, thread)
