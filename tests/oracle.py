"""Slow, obvious re-implementations, written from the densities and not from the library."""

import numpy as np
from scipy import stats
from scipy.special import gammaln, ive, logsumexp


def statistics(likelihood, X, weights, exposure, W, H):
    """p, q, r in H (K, N) and in W (F, K), from the table of docs/math.md with whole matrices."""
    V, M, e = X.T, np.broadcast_to(weights, X.shape).T, exposure
    L = W @ H
    ratio, rate = _ratio_and_rate(likelihood, V, M, e, L)
    if likelihood.counts:
        p_h, q_h, r_h = H * (W.T @ ratio), W.T @ rate, np.zeros_like(H)
        p_w, q_w, r_w = W * (ratio @ H.T), rate @ H.T, np.zeros_like(W)
    elif likelihood.local:
        p_h, q_h, r_h = _local(W.T @ ratio, W.T @ rate, H)
        p_w, q_w, r_w = _local(ratio @ H.T, rate @ H.T, W)
    else:
        p_h, q_h, r_h = np.zeros_like(H), W.T @ rate, H**2 * (W.T @ ratio)
        p_w, q_w, r_w = np.zeros_like(W), rate @ H.T, W**2 * (ratio @ H.T)
    return (p_h, q_h, r_h), (p_w, q_w, r_w)


def _local(A, B, x):
    """(LB1) before anything is out of reach."""
    P = 1.05 * np.maximum(A, B)
    return x * P, P + B - A, np.zeros_like(x)


def _ratio_and_rate(likelihood, V, M, e, L):
    """The factors of w in the sums of the table."""
    match likelihood.name:
        case "poisson":
            return M * V / L, M * e * np.ones_like(V)
        case "negative_binomial":
            d = likelihood.dispersion
            clumps = sum(np.where(j < V, e * L / (e * L + j * d), 0.0) for j in range(int(V.max())))
            return M * clumps / L, M * e * np.log1p(d) / d * np.ones_like(V)
        case "negative_binomial_2":
            r = likelihood.size
            return M * V / L, M * e * (V + r) / (e * L + r)
        case "gamma" | "exponential":
            shape = getattr(likelihood, "shape", 1.0)
            return shape * M * V / e / L**2, shape * M / L
        case "tweedie" | "gaussian":
            beta, phi = getattr(likelihood, "beta", 2.0), likelihood.number
            return (
                M * V * e ** (beta - 1) * L ** (beta - 2) / phi,
                M * e**beta * L ** (beta - 1) / phi,
            )
    raise AssertionError(f"no oracle for likelihood {likelihood.name}: write its terms here")


def log_density(likelihood, v, mean):
    """log p(v | mean), all constants included."""
    match likelihood.name:
        case "poisson":
            return stats.poisson.logpmf(v, mean)
        case "negative_binomial":
            d = likelihood.dispersion
            return stats.nbinom.logpmf(v, mean / d, 1.0 / (1.0 + d))
        case "negative_binomial_2":
            r = likelihood.size
            return stats.nbinom.logpmf(v, r, r / (r + mean))
        case "gamma":
            return stats.gamma.logpdf(v, likelihood.shape, scale=mean / likelihood.shape)
        case "exponential":
            return stats.expon.logpdf(v, scale=mean)
        case "gaussian":
            return stats.norm.logpdf(v, mean, np.sqrt(likelihood.variance))
        case "tweedie":
            return tweedie_log_density(v, mean, likelihood.beta, likelihood.dispersion)
    raise AssertionError(f"no oracle for likelihood {likelihood.name}: write its density here")


def tweedie_log_density(v, mean, beta, phi):
    """A Poisson number of Gamma variables: a sum over the number."""
    v, mean = np.broadcast_arrays(np.asarray(v, float), np.asarray(mean, float))
    number = mean**beta / (phi * beta)
    shape, scale = beta / (1.0 - beta), phi * (1.0 - beta) * mean ** (1.0 - beta)
    j = np.arange(1, 40 + int(np.max(4.0 * (number + v**beta / (phi * beta)))))[:, None]
    each = stats.poisson.logpmf(j, number.ravel()) + stats.gamma.logpdf(
        np.where(v > 0.0, v, 1.0).ravel(), j * shape, scale=scale.ravel()
    )
    found = logsumexp(each, axis=0).reshape(v.shape)
    return np.where(v > 0.0, found, -number)


def likelihood_value(likelihood, X, weights, exposure, W, H):
    """−Σ m log p(v | eλ) without the constants that do not depend on λ."""
    V, M, e = X.T, np.broadcast_to(weights, X.shape).T, exposure
    L = W @ H
    dropped = {  # in the density, not in the objective
        "poisson": V * np.log(e) - gammaln(V + 1.0),
        "exponential": -np.log(e),
        "gamma": -np.log(np.where(V > 0.0, V, 1.0)),
        "tweedie": -np.log(np.where(V > 0.0, V, 1.0)),
        "gaussian": 0.0,
    }
    constants = dropped["poisson" if likelihood.counts else likelihood.name]
    seen = V if likelihood.takes_zeros else np.where(M > 0.0, V, 1.0)
    return float(-np.sum(M * (log_density(likelihood, seen, e * L) - constants)))


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
            if chain.name == "gap" or (chain.name in ("bgar", "arg") and n == 0):
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
            elif chain.name == "arg":  # 2τ h_n is non-central χ²
                tau = chain.beta / (1.0 - chain.rho)
                law = stats.ncx2(2.0 * chain.alpha, 2.0 * tau * chain.rho * before)
                total -= law.logpdf(2.0 * tau * h[n]) + np.log(2.0 * tau) + jacobian
            else:
                raise AssertionError(f"no oracle for chain {chain.name}: write its density here")
    return float(total)
