"""Slow, obvious re-implementations, written from the densities and not from the library."""

import numpy as np
from scipy import stats
from scipy.special import gammaln, ive


def statistics(likelihood, X, weights, exposure, W, H):
    """p, q, r in H (K, N) and in W (F, K), from the table of docs/math.md with whole matrices."""
    V, M, e = X.T, np.broadcast_to(weights, X.shape).T, exposure
    L = W @ H
    if likelihood.counts:
        ratio, rate = M * V / L, M * e * np.ones_like(V)
        if likelihood.name == "negative_binomial":
            d = likelihood.dispersion
            clumps = sum(np.where(j < V, e * L / (e * L + j * d), 0.0) for j in range(int(V.max())))
            ratio, rate = M * clumps / L, rate * np.log1p(d) / d
        p_h, q_h, r_h = H * (W.T @ ratio), W.T @ rate, np.zeros_like(H)
        p_w, q_w, r_w = W * (ratio @ H.T), rate @ H.T, np.zeros_like(W)
    else:
        shape = likelihood.shape if likelihood.name == "gamma" else 1.0
        ratio, rate = shape * M * V / e / L**2, shape * M / L
        p_h, q_h, r_h = np.zeros_like(H), W.T @ rate, H**2 * (W.T @ ratio)
        p_w, q_w, r_w = np.zeros_like(W), rate @ H.T, W**2 * (ratio @ H.T)
    return (p_h, q_h, r_h), (p_w, q_w, r_w)


def log_density(likelihood, v, mean):
    """log p(v | mean), all constants included."""
    if likelihood.name == "poisson":
        return stats.poisson.logpmf(v, mean)
    if likelihood.name == "negative_binomial":
        d = likelihood.dispersion
        return stats.nbinom.logpmf(v, mean / d, 1.0 / (1.0 + d))
    if likelihood.name == "gamma":
        return stats.gamma.logpdf(v, likelihood.shape, scale=mean / likelihood.shape)
    return stats.expon.logpdf(v, scale=mean)


def likelihood_value(likelihood, X, weights, exposure, W, H):
    """−Σ m log p(v | eλ) without the constants that do not depend on λ."""
    V, M, e = X.T, np.broadcast_to(weights, X.shape).T, exposure
    L = W @ H
    if likelihood.name == "negative_binomial":
        constants = V * np.log(e) - gammaln(V + 1.0)  # in the density, not in the objective
        return float(-np.sum(M * (log_density(likelihood, V, e * L) - constants)))
    if likelihood.name == "gamma":
        seen = np.where(M > 0.0, V, 1.0)
        return float(-np.sum(M * (log_density(likelihood, seen, e * L) + np.log(seen))))
    if likelihood.name == "poisson":
        log_v = np.log(np.where(V > 0, L, 1.0))
        return float(np.sum(M * (e * L - V * log_v)))
    return float(np.sum(M * (V / (e * L) + np.log(L))))


def _gamma(x, shape, rate):
    return stats.gamma.logpdf(x, shape, scale=1.0 / rate)


def chain_value(chain, H, aux, scale):
    """−log p(H, aux) of a chain with scalar hyper-parameters, step by step with SciPy's laws."""
    total = 0.0
    log_scale = scale == "log"
    for k, h in enumerate(H):
        for n in range(len(h)):
            if chain.name == "none":
                continue
            if chain.name == "gap" or (chain.name == "bgar" and n == 0):
                total -= _gamma(h[n], chain.alpha, chain.beta) + log_scale * np.log(h[n])
                continue
            if n == 0:
                continue
            before, jacobian = h[n - 1], log_scale * np.log(h[n])
            if chain.name == "rate":
                total -= _gamma(h[n], chain.alpha, chain.beta / before) + jacobian
            elif chain.name == "shape":
                total -= _gamma(h[n], chain.alpha * before, chain.beta) + jacobian
            elif chain.name == "hier_rate":
                ratio = chain.beta_z / chain.beta_h * before
                if chain.marginal:
                    law = stats.betaprime(chain.alpha_h, chain.alpha_z, scale=ratio)
                    total -= law.logpdf(h[n]) + jacobian
                else:
                    z = aux[k, n - 1]
                    total -= _gamma(z, chain.alpha_z, chain.beta_z * before)
                    total -= _gamma(h[n], chain.alpha_h, chain.beta_h * z)
                    total -= jacobian + log_scale * np.log(z)
            elif chain.name == "hier_shape":
                x = 2.0 * chain.beta * np.sqrt(before * h[n])
                log_bessel = np.log(ive(chain.alpha - 1.0, x)) + x
                density = np.log(chain.beta) + 0.5 * (chain.alpha - 1.0) * np.log(h[n] / before)
                total -= density - chain.beta * (h[n] + before) + log_bessel + jacobian
            elif chain.name == "bgar":
                b = aux[k, n - 1]
                gamma, eta = chain.alpha * (1.0 - chain.rho), chain.alpha * chain.rho
                fresh = h[n] - b * before
                total -= stats.beta.logpdf(b, eta, gamma) + _gamma(fresh, gamma, chain.beta)
                total -= log_scale * (np.log(b) + np.log1p(-b) + np.log(fresh))
            else:
                raise AssertionError(f"no oracle for chain {chain.name}: write its density here")
    return float(total)
