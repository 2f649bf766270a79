"""Which chain, which hyper-parameters, how many components? Held-out data decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.utils import check_random_state

from .. import registry
from ..chains.base import Chain
from ..cluster import spread
from ..estimator import TemporalNMF
from ..likelihoods.base import Array
from ..metrics import error_of
from ..sampling.learning import SMOOTHING
from ..stopping import that_end_with_us
from ..telling import without
from ..validation import check_choice, check_count
from .grids import LAST_VALUE, OUR_GRIDS, in_units
from .prediction import expected_steps, last_values, mean_activation
from .splitters import HiddenSteps, Split, Splitter

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client


# Models that know nothing of the order of steps, or have no chain to speak of.
_WITHOUT_TIME = ("none", "gap", LAST_VALUE)


@dataclass(frozen=True)
class Candidate:
    """One setting and its errors on held-out data.

    Attributes
    ----------
    chain : str
        Registry name, or "last_value", which repeats the last observed step.
    params : dict
        Hyper-parameters as they were tried.
    n_components : int
        0 for "last_value".
    errors : array, (n_splits,)
        Error per held-out entry, averaged over the starts.
    """

    chain: str
    params: dict[str, Any]
    n_components: int
    errors: Array

    @property
    def mean(self) -> float:
        return float(self.errors.mean())

    @property
    def standard_error(self) -> float:
        """Of the mean over splits; NaN with one split."""
        n = len(self.errors)
        return float(self.errors.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")

    def __str__(self) -> str:
        params = ", ".join(f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}"
                           for k, v in self.params.items())  # fmt: skip
        if self.chain == LAST_VALUE:
            return "repeating the last value"
        inside = f"({params})" if params else ""
        plural = "" if self.n_components == 1 else "s"
        return f"{self.chain}{inside} with {self.n_components} component{plural}"


@dataclass(frozen=True)
class Selection:
    """What `select` found.

    Attributes
    ----------
    candidates : list of Candidate
        All settings that were tried, and "last_value" where steps were hidden.
    best : Candidate
        The one that the rule chose.
    model : TemporalNMF
        Fitted with that setting to all of the data.
    rule : {"one_se", "lowest"}
    n_fits, n_unconverged : int
        How many fits were made, and how many of them ended at max_iter.
    """

    candidates: list[Candidate]
    best: Candidate
    model: TemporalNMF
    rule: str
    n_fits: int
    n_unconverged: int

    @property
    def lowest(self) -> Candidate:
        """The setting with the lowest mean error."""
        return _lowest(_models(self.candidates))

    def best_of(self, chain: str) -> Candidate | None:
        """The setting of one chain with the lowest mean error."""
        found = [c for c in self.candidates if c.chain == chain]
        return _lowest(found) if found else None

    @property
    def answer(self) -> str:
        """The finding in words."""
        best, lowest = self.best, self.lowest
        words = [f"Chosen: {best}, held-out error {best.mean:.4g} per entry."]
        if best is not lowest:
            words.append(
                f"The lowest error is that of {lowest}, {lowest.mean:.4g}; the chosen one is "
                f"within one standard error of it and simpler."
            )
        for name, title in (("none", "plain NMF"), (LAST_VALUE, "repeating the last value")):
            other = self.best_of(name)
            if other is not None and best.chain != name:
                words.append(_comparison(best, other, title))
        plain, chains = (
            [c.mean for c in self.candidates if (c.chain in _WITHOUT_TIME) == without]
            for without in (True, False)
        )
        if chains and min(chains) >= min(plain):
            words.append("No chain does better here: modelling time does not help on these data.")
        if self.n_unconverged:
            words.append(
                f"{self.n_unconverged} of {self.n_fits} fits ended at max_iter, before they "
                f"converged."
            )
        words.append(
            "The setting was chosen on these very errors, so expect a little more on new data."
        )
        return " ".join(words)

    def to_frame(self) -> pd.DataFrame:
        """All candidates as a pandas frame, the lowest error first."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                'Selection.to_frame needs pandas: pip install "temporalnmf[io]".'
            ) from error
        return pd.DataFrame(self.rows()).sort_values("error", kind="stable", ignore_index=True)

    def rows(self) -> list[dict[str, Any]]:
        """One row per candidate, in the order they were tried."""
        return [
            {
                "chain": c.chain,
                "n_components": c.n_components,
                "params": " ".join(f"{k}={v}" for k, v in c.params.items()),
                "error": c.mean,
                "standard_error": c.standard_error,
                "chosen": c is self.best,
            }
            for c in self.candidates
        ]

    def plot(self, ax: Any = None) -> Any:
        """Error against the number of components if several were tried, else a row per candidate.

        Bars are one standard error to each side.

        Returns
        -------
        matplotlib Axes
        """
        from ..plotting import plot_selection

        return plot_selection(self, ax)


def select(
    X: Any,
    *,
    chains: Any = "all",
    n_components: int | Iterable[int] = 5,
    splitter: Splitter | None = None,
    n_init: int = 1,
    rule: str = "one_se",
    n_jobs: int | None = None,
    client: Client | None = None,
    random_state: Any = None,
    progress: Callable[[int, int], None] | None = None,
    **params: Any,
) -> Selection:
    """Choose chain, hyper-parameters and number of components by their errors on held-out data.

    Parameters
    ----------
    X : array or sparse matrix, (n_times, n_features)
        Counts, rows in time order. NaN is missing in dense data.
    chains : "all", str, Chain, a sequence of them, or dict, default="all"
        A name stands for a small grid around the defaults, an object for itself; a dict has names
        as keys and lists of hyper-parameters as values. Plain NMF is tried in any case.
    n_components : int or iterable of int, default=5
    splitter : splitter, default=None
        From `temporalnmf.selection`; None is `HiddenSteps(n_splits=5)`.
    n_init : int, default=1
        Random starts per split; their errors are averaged.
    rule : {"one_se", "lowest"}, default="one_se"
        The lowest mean error, or the fewest components among the settings whose error exceeds
        the lowest by at most one standard error of the difference over the splits (of those
        with as few components, the lowest error).
    n_jobs : int or None, default=None
        Processes; the result does not depend on it.
    client : distributed.Client or None, default=None
        A Dask cluster that makes the fits, in the place of `n_jobs`; see `temporalnmf.cluster`.
    random_state : int, RandomState instance or None, default=None
    progress : callable or None, default=None
        Called with the numbers of grids that are done and wanted.
    **params
        Further parameters of `TemporalNMF`.

    Returns
    -------
    Selection

    Notes
    -----
    Along the grid of a chain each fit starts from the last one. The error is the
    Kullback–Leibler error per held-out entry, or the Itakura–Saito error with
    ``likelihood="exponential"``.

    Examples
    --------
    >>> import numpy as np
    >>> from temporalnmf.selection import HiddenEntries, select
    >>> rng = np.random.default_rng(0)
    >>> H, W = rng.gamma(2.0, 20.0, size=(40, 2)), rng.dirichlet(np.ones(12), size=2)
    >>> X = rng.poisson(H @ W).astype(float)
    >>> found = select(X, chains="none", n_components=[1, 2, 3, 4],
    ...                splitter=HiddenEntries(n_splits=4, random_state=0), random_state=0)
    >>> found.best.n_components
    2
    """
    check_choice("rule", rule, ("one_se", "lowest"))
    check_count("n_init", n_init)
    if client is not None and n_jobs is not None:
        raise ValueError(f"n_jobs={n_jobs} and client=: give one of them; a cluster has workers.")
    ranks = _check_ranks(n_components)
    families = _families(chains)
    random = check_random_state(random_state)
    if splitter is None:
        splitter = HiddenSteps(random_state=random)
    for name in ("chain", "warm_start", "callback", "init", "checkpoint"):
        if name in params:
            raise ValueError(
                f"{name}={params[name]!r} cannot be set here: select makes many fits. Chains go "
                f"into `chains`."
            )
    given, X = X, _as_matrix(X)
    splits = list(splitter.split(X))
    seeds = random.randint(2**31 - 1, size=(len(splits), n_init))
    work = [
        (family, K, i, seeds[i, j])
        for family in families
        for K in ranks
        for i in range(len(splits))
        for j in range(n_init)
    ]
    errors: dict[int, list[float]] = {}
    n_unconverged = 0
    for unit, (of_grid, unconverged) in _outcomes(X, splits, params, work, n_jobs, client):
        errors[unit] = of_grid
        n_unconverged += unconverged
        if progress is not None:
            progress(len(errors), len(work))
    found = [errors[unit] for unit in range(len(work))]
    candidates = _collect(families, ranks, len(splits), n_init, found)
    if splits[0].train.ndim == 1:
        candidates.append(_last_value(X, splits, params))
    best = _choose(candidates, rule)
    level = mean_activation(X, np.ones(X.shape[0], dtype=bool), best.n_components)
    chain = _chain(best.chain, best.params, level)
    model = TemporalNMF(best.n_components, chain=chain, random_state=int(seeds[0, 0]), **params)
    model.fit(given)
    return Selection(candidates, best, model, rule, sum(map(len, found)), n_unconverged)


Family = tuple[str, list[Any]]
Unit = tuple[Family, int, int, int]  # chain and grid, number of components, split, seed
Outcome = tuple[list[float], int]


def _as_matrix(X: Any) -> Any:
    if sparse.issparse(X):
        return sparse.csr_array(X)
    if hasattr(X, "iloc"):  # pandas has a missing value of its own
        X = X.to_numpy(dtype=float, na_value=np.nan)
    X = np.asarray(X, dtype=float)
    if X.ndim != 2:
        raise ValueError(f"X has shape {X.shape}: expected (n_times, n_features).")
    return X


def _check_ranks(n_components: Any) -> list[int]:
    ranks = [n_components] if isinstance(n_components, Integral) else list(n_components)
    if not ranks:
        raise ValueError("n_components is empty: give at least one number of components.")
    return [check_count("n_components", K) for K in ranks]


def _families(chains: Any) -> list[Family]:
    """Names, each with the settings to try: hyper-parameters or a chain object."""
    if isinstance(chains, str | Chain):
        chains = list(OUR_GRIDS) if isinstance(chains, str) and chains == "all" else [chains]
    families: list[Family] = []
    if isinstance(chains, dict):
        families = [(name, list(grid)) for name, grid in chains.items()]
    else:
        for chain in chains:
            if isinstance(chain, Chain):
                families.append((chain.name, [chain]))
            else:
                check_choice("chains", chain, tuple(OUR_GRIDS))
                families.append((chain, OUR_GRIDS[chain]))
    for name, grid in families:
        check_choice("chains", name, tuple(registry.CHAINS))
        if not grid:
            raise ValueError(f"chains={{{name!r}: []}}: give at least one setting, such as {{}}.")
    if not any(name == "none" for name, _ in families):
        families.insert(0, ("none", [{}]))
    return families


def _chain(name: str, setting: Any, level: float) -> Chain:
    if isinstance(setting, Chain):
        return setting
    chain = registry.create(registry.CHAINS, name, "chains")
    return chain.set_params(**in_units(setting, level))


def _outcomes(
    X: Any,
    splits: Sequence[Split],
    params: dict[str, Any],
    work: Sequence[Unit],
    n_jobs: int | None,
    client: Client | None,
) -> Iterator[tuple[int, Outcome]]:
    """What `_errors_of` finds, and of which unit of the work."""
    if client is not None:
        yield from spread(client, _errors_shared, (X, splits, params), work)
        return
    jobs = (
        delayed(_errors_of)(X, family, K, splits[i], seed, params) for family, K, i, seed in work
    )
    yield from enumerate(Parallel(n_jobs, return_as="generator", **that_end_with_us())(jobs))


def _errors_shared(
    shared: tuple[Any, Sequence[Split], dict[str, Any]], family: Family, K: int, i: int, seed: int
) -> Outcome:
    """The same on a cluster, whose workers have data and splits."""
    X, splits, params = shared
    return _errors_of(X, family, K, splits[i], seed, params)


def _errors_of(
    X: Any, family: Family, n_components: int, split: Split, seed: int, params: dict[str, Any]
) -> Outcome:
    """Held-out error of each setting of a family, each fit started from the last.

    And how many of the fits ended at max_iter.
    """
    # Workers share the data as read-only memory, which would be compiled for once more.
    X = X.copy() if sparse.issparse(X) else np.array(X)
    name, grid = family
    level = mean_activation(X, split.train, n_components)
    if name == "none" and params.get("solver") in registry.SAMPLERS:
        # Plain NMF has no posterior to draw from: as a rival it is a mode.
        params = {**params, "solver": "accelerated", "smoothing": _smoothing(params)}
    model = TemporalNMF(n_components, random_state=int(seed), warm_start=True, **params)
    errors, unconverged = [], 0
    with without(Warning):  # the answer counts what did not converge
        for setting in grid:
            model.set_params(chain=_chain(name, setting, level)).fit(X, mask=split.train)
            predicted = expected_steps(model)
            errors.append(_held_out_error(X, predicted, split.hidden, model.likelihood))
            unconverged += not model.converged_
    return errors, unconverged


def _held_out_error(X: Any, predicted: Array, hidden: Array, likelihood: Any) -> float:
    """Error per hidden entry."""
    dense = X.toarray() if sparse.issparse(X) else X
    seen = (hidden if hidden.ndim == 2 else hidden[:, None]) & ~np.isnan(dense)
    return error_of(likelihood)(dense[seen], predicted[seen]) / int(seen.sum())


def _collect(
    families: list[Family], ranks: list[int], n_splits: int, n_init: int, found: list[list[float]]
) -> list[Candidate]:
    results = iter(found)
    candidates = []
    for name, grid in families:
        for K in ranks:
            # (n_splits, settings): starts averaged
            per_split = np.array(
                [np.mean([next(results) for _ in range(n_init)], axis=0) for _ in range(n_splits)]
            )
            for i, setting in enumerate(grid):
                shown = setting.get_params() if isinstance(setting, Chain) else dict(setting)
                candidates.append(Candidate(name, shown, K, per_split[:, i]))
    return candidates


def _smoothing(params: dict[str, Any]) -> float:
    """For models without draws; one that is learned has its prior's centre there."""
    given = TemporalNMF(**params).smoothing
    return SMOOTHING if isinstance(given, str) else float(given)


def _last_value(X: Any, splits: Sequence[Split], params: dict[str, Any]) -> Candidate:
    usual, smoothing = TemporalNMF(**params), _smoothing(params)
    errors = [
        _held_out_error(X, last_values(X, split.train, smoothing), split.hidden, usual.likelihood)
        for split in splits
    ]
    return Candidate(LAST_VALUE, {}, 0, np.array(errors))


def _models(candidates: Sequence[Candidate]) -> list[Candidate]:
    return [c for c in candidates if c.chain != LAST_VALUE]


def _lowest(candidates: Sequence[Candidate]) -> Candidate:
    """The lowest mean error; one that could not be computed never is."""
    return min(candidates, key=lambda c: np.inf if np.isnan(c.mean) else c.mean)


def _choose(candidates: Sequence[Candidate], rule: str) -> Candidate:
    models = _models(candidates)
    lowest = _lowest(models)
    n = len(lowest.errors)
    if rule == "lowest" or n < 2:
        return lowest

    def close(candidate: Candidate) -> bool:
        excess = candidate.errors - lowest.errors
        return bool(excess.mean() <= excess.std(ddof=1) / np.sqrt(n))

    return min(filter(close, models), key=lambda c: (c.n_components, c.mean))


def _comparison(best: Candidate, other: Candidate, title: str) -> str:
    """How the chosen setting does against another, split by split."""
    if other.mean == 0.0:
        return f"The error of {title} is {other.mean:g}."
    gain = 100.0 * (1.0 - best.mean / other.mean)
    won, n = int(np.sum(best.errors < other.errors)), len(best.errors)
    way = f"{gain:.1f} % lower than" if gain >= 0 else f"{-gain:.1f} % higher than"
    return f"That is {way} {title} ({other.mean:.4g}), lower in {won} of {n} splits."
