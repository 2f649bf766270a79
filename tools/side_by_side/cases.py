"""What is compared: kinds of data, models and places, made from the registry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, get_args

import numpy as np
from scipy import sparse

from temporalnmf import chains, registry

# Hyper-parameters by chain. Chains that are not listed are taken at their defaults. The second
# set is admissible on the log scale only.
_SETTINGS: dict[str, list[dict[str, Any]]] = {
    "gap": [{"alpha": 1.7, "beta": 0.3}, {"alpha": 0.3, "beta": 0.05}],
    "rate": [{"alpha": 1.5, "beta": 1.3}, {"alpha": 0.7, "beta": 0.9}],
    "hier_rate": [
        {"alpha_z": 3.0, "beta_z": 2.0, "alpha_h": 1.4, "beta_h": 1.1},
        {"alpha_z": 0.5, "beta_z": 0.6, "alpha_h": 0.4, "beta_h": 0.3, "marginal": True},
    ],
    "shape": [{"alpha": 0.9, "beta": 0.8}, {"alpha": 0.2, "beta": 0.25}],
    "hier_shape": [{"alpha": 1.6, "beta": 0.7}, {"alpha": 0.4, "beta": 0.3}],
    "bgar": [{"alpha": 4.0, "beta": 0.4, "rho": 0.6}, {"alpha": 2.0, "beta": 0.2, "rho": 0.9}],
    "arg": [{"alpha": 1.6, "beta": 0.2, "rho": 0.7}, {"alpha": 0.4, "beta": 0.05, "rho": 0.9}],
}
MASKS = ("none", "steps", "entries", "weights")
STORAGES = ("dense", "csr", "sparse mask")
PLACES = ("memory", "shards", "dask array", "workers")


Scale = Literal["log", "linear"]


@dataclass(frozen=True)
class Case:
    """One kind of problem."""

    likelihood: str
    chain: str
    setting: int
    scale: Scale
    mask: str
    storage: str

    def __str__(self) -> str:
        return "-".join(
            (self.likelihood, self.chain, str(self.setting), self.scale, self.mask, self.storage)
        )

    def chain_object(self) -> Any:
        settings = _SETTINGS.get(self.chain, [{}])
        return registry.load(registry.CHAINS[self.chain])(**settings[self.setting])


def all_cases() -> Iterator[Case]:
    """Every likelihood × chain × scale × mask × storage."""
    for likelihood, name, scale, mask, storage in product(
        registry.LIKELIHOODS, registry.CHAINS, get_args(Scale), MASKS, STORAGES
    ):
        takes_zeros = registry.create(registry.LIKELIHOODS, likelihood, "").takes_zeros
        if storage != "dense" and not takes_zeros:
            continue
        if storage == "sparse mask" and mask not in ("entries", "weights"):
            continue
        n_settings = len(_SETTINGS.get(name, [{}])) if scale == "log" else 1
        for setting in range(n_settings):
            yield Case(likelihood, name, setting, scale, mask, storage)


def data_of(case: Case, n_steps: int = 16, n_features: int = 9) -> tuple[Any, Any, Any]:
    """X, mask and exposure of a case."""
    rng = np.random.default_rng(len(str(case)))
    time = np.linspace(0.0, 1.0, n_steps)
    H = 20.0 * np.column_stack([np.exp(-3.0 * (time - 0.3) ** 2), 0.2 + time])
    rates = H @ rng.dirichlet(np.full(n_features, 0.7), size=2) + 0.05
    if registry.create(registry.LIKELIHOODS, case.likelihood, "").takes_zeros:
        X: Any = rng.poisson(rates).astype(float)
        X[:, 1] = 0.0
    else:
        X = rng.exponential(rates) + 1e-6
    mask = _mask(rng, case.mask, X.shape)
    if case.storage != "dense":
        X = sparse.csr_array(X)
    if case.storage == "sparse mask":
        mask = sparse.csr_array(mask)
    return X, mask, rng.uniform(0.5, 2.0, size=n_steps)


def _mask(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> Any:
    if kind == "none":
        return None
    if kind == "steps":
        mask = np.ones(shape[0])
        mask[[3, 4, shape[0] - 1]] = 0.0
        return mask
    mask = (rng.random(shape) < 0.7).astype(float)
    if kind == "weights":
        mask *= rng.uniform(0.2, 2.0, size=shape)
    mask[0, 2] = mask[-1, 2] = 1.0
    return mask


def learned_chains() -> dict[str, Any]:
    """Chains by whose hyper-parameters are learned by draws."""
    found = {
        "rate": chains.Rate("learn"),
        "shape": chains.Shape("learn", "learn"),
        "hier_shape": chains.HierShape(beta="learn"),
        "hier_rate": chains.HierRate(alpha_h="learn"),
        "bgar": chains.BGAR(alpha=2.0, beta="learn", rho="learn"),
    }
    if hasattr(chains, "ARG"):  # an older source may not have it
        found["arg"] = chains.ARG(alpha=2.0, beta="learn", rho="learn")
    return found
