"""Which chain, which hyper-parameters, how many components? Held-out data decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.utils import check_random_state

from .. import registry
from .._typing import Array
from ..chains.base import Chain
from ..cluster.clients import spread
from ..estimator import TemporalNMF
from ..messages.arguments import check_choice, check_count
from ..messages.warning import without
from ..metrics import error_of
from ..runtime.signals import that_end_with_us
from ..sampling.learning import SMOOTHING
from .data import gridded
from .grids import LAST_VALUE, OUR_GRIDS, in_units
from .prediction import expected_steps, last_values, mean_activation
from .splitters import HiddenSteps, Split, Splitter
from .statistics import resampled_error

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client


_PLAIN = "none"
# Models that know nothing of the order of steps.
_WITHOUT_TIME = (_PLAIN, "gap")


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
    ratio : float
        Held-out entries over training entries, which tells how much the splits overlap.
    """

    chain: str
    params: dict[str, Any]
    n_components: int
    errors: Array
    ratio: float = 0.0

    @property
    def mean(self) -> float:
        return float(self.errors.mean())

    @property
    def standard_error(self) -> float:
        """Of the mean over splits, corrected for their overlap; NaN with one split."""
        return resampled_error(self.errors, self.ratio)

    def __str__(self) -> str:
        params = ", ".join(f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}"
                           for k, v in self.params.items())  # fmt: skip
        if self.chain == LAST_VALUE:
            return "repeating the last value"
        name = "plain NMF" if self.chain == _PLAIN else self.chain
        inside = f"({params})" if params else ""
        plural = "" if self.n_components == 1 else "s"
        return f"{name}{inside} with {self.n_components} component{plural}"


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
        plain, last = self.best_of(_PLAIN), self.best_of(LAST_VALUE)
        if plain is not None and best.chain != _PLAIN:
            words.append(_comparison(best, plain, "plain NMF"))
        if last is not None:
            words.append(_comparison(best, last, "repeating the last value"))
        chains = [c for c in self.candidates if c.chain not in (*_WITHOUT_TIME, LAST_VALUE)]
        simple = [c for c in self.candidates if c.chain in _WITHOUT_TIME]
        if chains and _lowest(chains).mean >= _lowest(simple).mean:
            words.append(
                f"No chain does better than {_lowest(simple)} here ({_lowest(chains)} has "
                f"{_lowest(chains).mean:.4g}): modelling time does not help on these data."
            )
        if last is not None and last.mean <= best.mean:
            words.append("Repeating the last value does as well or better: use it instead.")
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
    mask: Any = None,
    exposure: Any = None,
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
    X : array, frame, xarray array, sparse matrix, TimeTable or path, (n_times, n_features)
        As in `TemporalNMF.fit`: rows with dates or numbers as labels are put on their grid first.
    mask : array, (n_times,) or (n_times, n_features), default=None
        1 or True: observed, 0 or False: missing, which is not scored; no other weights.
    exposure : array, (n_times,), default=None
        Size behind each step; what is predicted is exposure times rate.
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
        with as few components, the lowest error). The standard error is corrected for the
        overlap of splits. Where chains compete with plain NMF, a setting with a higher error than
        the lowest of plain NMF is never chosen.
    n_jobs : int or None, default=None
        Processes; the result does not depend on it.
    client : distributed.Client or None, default=None
        A Dask cluster that makes the fits, in the place of `n_jobs`; see `temporalnmf.cluster`.
    random_state : int, RandomState instance or None, default=None
    progress : callable or None, default=None
        Called with the numbers of fits that are done and wanted.
    **params
        Further parameters of `TemporalNMF`.

    Returns
    -------
    Selection

    Notes
    -----
    Every fit of a split starts from the same seed, so that a result does not depend on what else is
    tried, or in which order. The error is the Kullback–Leibler error per held-out entry, or the
    Itakura–Saito error with ``likelihood="exponential"``.

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
    settings = _settings(chains)
    random = check_random_state(random_state)
    if splitter is None:
        splitter = HiddenSteps(random_state=random)
    for name in ("chain", "warm_start", "callback", "init", "checkpoint"):
        if name in params:
            raise ValueError(
                f"{name}={params[name]!r} cannot be set here: select makes many fits. Chains go "
                f"into `chains`."
            )
    given = {"X": X, "mask": mask, "exposure": exposure}
    X, sizes = gridded(**given, likelihood=params.get("likelihood", "poisson"))
    splits = list(splitter.split(X))
    seeds = random.randint(2**31 - 1, size=(len(splits), n_init))
    work = [
        Unit(name, setting, K, i, int(seeds[i, j]))
        for name, setting in settings
        for K in ranks
        for i in range(len(splits))
        for j in range(n_init)
    ]
    found = np.full(len(work), np.nan)
    n_unconverged = 0
    outcomes = _outcomes((X, sizes, splits, params), work, n_jobs, client)
    for n_done, (unit, (error, converged)) in enumerate(outcomes, start=1):
        found[unit] = error
        n_unconverged += not converged
        if progress is not None:
            progress(n_done, len(work))
    ratio = float(np.mean([split.hidden.sum() / split.train.sum() for split in splits]))
    # (settings and ranks, n_splits): starts averaged
    errors = found.reshape(-1, len(splits), n_init).mean(axis=2)
    candidates = [
        Candidate(name, _shown(setting), K, errors[i], ratio)
        for i, ((name, setting), K) in enumerate(product(settings, ranks))
    ]
    if splits[0].train.ndim == 1:
        candidates.append(_last_value(X, sizes, splits, params, ratio))
    best = _choose(candidates, rule)
    level = mean_activation(X, np.ones(X.shape[0], dtype=bool), best.n_components, sizes)
    chain = _chain(best.chain, best.params, level)
    model = TemporalNMF(best.n_components, chain=chain, random_state=int(seeds[0, 0]), **params)
    model.fit(**given)
    return Selection(candidates, best, model, rule, len(work), n_unconverged)


Setting = tuple[str, Any]  # a chain's name, and its hyper-parameters or the chain itself
Outcome = tuple[float, bool]  # error per held-out entry, and whether the fit converged
Shared = tuple[Any, Array, Sequence[Split], dict[str, Any]]  # data, exposure, splits, parameters


class Unit(NamedTuple):
    """One fit."""

    chain: str
    setting: Any
    n_components: int
    split: int
    seed: int


def _check_ranks(n_components: Any) -> list[int]:
    ranks = [n_components] if isinstance(n_components, Integral) else list(n_components)
    if not ranks:
        raise ValueError("n_components is empty: give at least one number of components.")
    return [check_count("n_components", K) for K in ranks]


def _settings(chains: Any) -> list[Setting]:
    """Names, each with hyper-parameters or a chain object; plain NMF is among them."""
    if isinstance(chains, str | Chain):
        chains = list(OUR_GRIDS) if isinstance(chains, str) and chains == "all" else [chains]
    if isinstance(chains, dict):
        grids = [(name, list(grid)) for name, grid in chains.items()]
    else:
        grids = []
        for chain in chains:
            if isinstance(chain, Chain):
                grids.append((chain.name, [chain]))
            else:
                check_choice("chains", chain, tuple(OUR_GRIDS))
                grids.append((chain, list(OUR_GRIDS[chain])))
    for name, grid in grids:
        check_choice("chains", name, tuple(registry.CHAINS))
        if not grid:
            raise ValueError(f"chains={{{name!r}: []}}: give at least one setting, such as {{}}.")
    if not any(name == _PLAIN for name, _ in grids):
        grids.insert(0, (_PLAIN, [{}]))
    return [(name, setting) for name, grid in grids for setting in grid]


def _shown(setting: Any) -> dict[str, Any]:
    return setting.get_params() if isinstance(setting, Chain) else dict(setting)


def _chain(name: str, setting: Any, level: float) -> Chain:
    if isinstance(setting, Chain):
        return setting
    chain = registry.create(registry.CHAINS, name, "chains")
    return chain.set_params(**in_units(setting, level))


def _outcomes(
    shared: Shared, work: Sequence[Unit], n_jobs: int | None, client: Client | None
) -> Iterator[tuple[int, Outcome]]:
    """What `_outcome` finds, and of which unit of the work."""
    if client is not None:
        yield from spread(client, _outcome, shared, work)
        return
    jobs = (delayed(_outcome)(shared, *unit) for unit in work)
    yield from enumerate(Parallel(n_jobs, return_as="generator", **that_end_with_us())(jobs))


def _outcome(
    shared: Shared, name: str, setting: Any, n_components: int, split: int, seed: int
) -> Outcome:
    """One fit: its error per held-out entry, and whether it converged."""
    X, exposure, splits, params = shared
    # Workers share the data as read-only memory, which would be compiled for once more.
    X = X.copy() if sparse.issparse(X) else np.array(X)
    train, hidden = splits[split].train, splits[split].hidden
    level = mean_activation(X, train, n_components, exposure)
    if name == _PLAIN and params.get("solver") in registry.SAMPLERS:
        # Plain NMF has no posterior to draw from: as a rival it is a mode.
        params = {**params, "solver": "accelerated", "smoothing": _smoothing(params)}
    chain = _chain(name, setting, level)
    model = TemporalNMF(n_components, chain=chain, random_state=seed, **params)
    with without(Warning):  # the answer counts what did not converge
        model.fit(X, mask=train, exposure=exposure)
    error = _held_out_error(X, expected_steps(model), hidden, model.likelihood)
    return error, bool(model.converged_)


def _held_out_error(X: Any, predicted: Array, hidden: Array, likelihood: Any) -> float:
    """Error per hidden entry."""
    dense = X.toarray() if sparse.issparse(X) else X
    seen = (hidden if hidden.ndim == 2 else hidden[:, None]) & ~np.isnan(dense)
    return error_of(likelihood)(dense[seen], predicted[seen]) / int(seen.sum())


def _smoothing(params: dict[str, Any]) -> float:
    """For models without draws; one that is learned has its prior's centre there."""
    given = TemporalNMF(**params).smoothing
    return SMOOTHING if isinstance(given, str) else float(given)


def _last_value(
    X: Any, exposure: Array, splits: Sequence[Split], params: dict[str, Any], ratio: float
) -> Candidate:
    usual, smoothing = TemporalNMF(**params), _smoothing(params)
    errors = [
        _held_out_error(
            X, last_values(X, split.train, smoothing, exposure), split.hidden, usual.likelihood
        )
        for split in splits
    ]
    return Candidate(LAST_VALUE, {}, 0, np.array(errors), ratio)


def _models(candidates: Sequence[Candidate]) -> list[Candidate]:
    return [c for c in candidates if c.chain != LAST_VALUE]


def _lowest(candidates: Sequence[Candidate]) -> Candidate:
    """The lowest mean error; one that could not be computed never is."""
    return min(candidates, key=_rank)


def _rank(candidate: Candidate) -> tuple[Any, ...]:
    """By mean error; ties are settled by what was tried, never by the order of the grid."""
    error = np.inf if np.isnan(candidate.mean) else candidate.mean
    return error, candidate.n_components, candidate.chain, str(sorted(candidate.params.items()))


def _choose(candidates: Sequence[Candidate], rule: str) -> Candidate:
    models = _models(candidates)
    lowest = _lowest(models)
    if rule == "lowest" or len(lowest.errors) < 2:
        return lowest
    plain = [c for c in models if c.chain == _PLAIN]
    competing = plain and len(plain) < len(models)
    limit = _lowest(plain).mean if competing else np.inf

    def eligible(candidate: Candidate) -> bool:
        excess = candidate.errors - lowest.errors
        close = excess.mean() <= resampled_error(excess, candidate.ratio)
        return candidate is lowest or bool(close and candidate.mean <= limit)

    return min(filter(eligible, models), key=lambda c: (c.n_components, *_rank(c)))


def _comparison(best: Candidate, other: Candidate, title: str) -> str:
    """How the chosen setting does against another, split by split."""
    if other.mean == 0.0:
        return f"The error of {title} is {other.mean:g}."
    gain = 100.0 * (1.0 - best.mean / other.mean)
    won, n = int(np.sum(best.errors < other.errors)), len(best.errors)
    way = f"{gain:.1f} % lower than" if gain >= 0 else f"{-gain:.1f} % higher than"
    return f"That is {way} {title} ({other.mean:.4g}), lower in {won} of {n} splits."
