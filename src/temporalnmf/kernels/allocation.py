"""Draw the split of counts over the components, and the weights given the parts.

A negative binomial count v with variance λ(1+d) is a Poisson number of clumps with mean
λ log(1+d)/d. Given v, their number is that of the tables of v customers in a Chinese restaurant
process with concentration λ/d (Zhou and Carin 2015). Clumps are split in place of counts.

Counts are compressed rows, one per feature. So are the missing entries of observed steps: these
are drawn, too, so that weights given the counts are Dirichlet. Features are divided into ranges,
each with its own random stream, so that draws do not depend on the number of threads.
"""

import numpy as np

from .dense import compiled
from .floor import FLOOR
from .handoff import begin, end
from .variates import allocate, few_crt


@compiled
def allocate_rows(
    flags, thread, first, last, indptr, indices, counts, unseen_indptr, unseen_indices, exposure,
    sizes, W, HT, bounds, streams, YW, YH,
):  # fmt: skip
    """Split every count v_fn over components with weights w_fk h_kn; draw missing ones.

    W is (F, K), HT (N, K), both C-ordered. Sets YW (F, K), the sums over steps, and YH[s]
    (N, K), those over the features of range s. `exposure` (N,) is that of clumps, e log(1+d)/d;
    `sizes` (N,) are e/d, infinite for Poisson counts.
    """
    begin(flags, thread)
    K = W.shape[1]
    weights, part = np.empty(K), np.empty(K)
    for s in range(first, last):
        rng, of_steps = streams[s], YH[s]
        of_steps[:] = 0.0
        for f in range(bounds[s], bounds[s + 1]):
            of_feature, w = YW[f], W[f]
            of_feature[:] = 0.0
            for j in range(indptr[f], indptr[f + 1]):
                n, count, rate = indices[j], counts[j], 0.0
                h, y = HT[n], of_steps[n]
                for k in range(K):
                    weights[k] = w[k] * h[k]
                    part[k] = 0.0
                    rate += weights[k]
                if sizes[n] < np.inf:
                    count = few_crt(rng, count, max(sizes[n] * rate, FLOOR))
                allocate(rng, count, weights, part)
                for k in range(K):
                    of_feature[k] += part[k]
                    y[k] += part[k]
            for j in range(unseen_indptr[f], unseen_indptr[f + 1]):
                n = unseen_indices[j]
                for k in range(K):
                    drawn = rng.poisson(exposure[n] * w[k] * HT[n, k])
                    of_feature[k] += drawn
                    of_steps[n, k] += drawn
    end(flags, thread)


@compiled
def draw_weights(flags, thread, first, last, YW, smoothing, active, bounds, streams, W):
    """Gamma variables (F, K) whose columns, divided by their sums, are Dirichlet(s + y)."""
    begin(flags, thread)
    for s in range(first, last):
        rng = streams[s]
        for f in range(bounds[s], bounds[s + 1]):
            for k in range(W.shape[1]):
                if active[f]:
                    W[f, k] = max(rng.standard_gamma(smoothing + YW[f, k]), FLOOR)
                else:
                    W[f, k] = 0.0
    end(flags, thread)
