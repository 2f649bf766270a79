"""Choice of chain, hyper-parameters and number of components by errors on held-out data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_random_state

from .. import registry
from .._typing import Array
from ..chains.base import Chain
from ..chains.parameters import Parameter
from ..cluster.clients import spread
from ..data.validation import Data, TimesWarning
from ..estimator import TemporalNMF
from ..inference.config import error_of
from ..inference.smoothing import SMOOTHING
from ..likelihoods.base import Likelihood
from ..messages.arguments import check_choice, check_count
from ..messages.errors import ArgumentError, Text
from ..messages.formatting import counted
from ..messages.warning import without
from ..reading.libraries import pd
from ..runtime.signals import that_end_with_us
from ..solvers.options import solver_name
from ..timeline.clock import CYCLES
from .data import Gridded, Matrix, dense, gridded
from .grids import LAST_CYCLE, LAST_VALUE, NAIVE, OUR_GRIDS, Settings, in_units
from .prediction import expected_steps, last_cycles, last_values, mean_activation
from .seasons import NO_EFFECTS, Terms, chosen_terms, cycle_of, positions_in
from .splitters import HiddenSteps, RandomState, Split, Splitter
from .statistics import resampled_error

if TYPE_CHECKING:
    from distributed import Client
    from matplotlib.axes import Axes

Chains = str | Chain | Iterable[str | Chain] | Mapping[str, Iterable[Settings]]
Parameters = dict[str, Any]  # of TemporalNMF
Progress = Callable[[int, int], None]  # called with the fits done, and all

_PLAIN = "none"
# Models that ignore the order of steps.
_WITHOUT_TIME = tuple(n for n, path in registry.CHAINS.items() if not registry.load(path).dynamic)
# Parameters of a single fit, which a search cannot take.
_NOT_HERE = ("chain", "warm_start", "callback", "init", "checkpoint")


@dataclass(frozen=True)
class Candidate:
    """A setting and its errors on held-out data.

    Attributes
    ----------
    chain : str
        Registry name; or "last_value", which repeats the last observed step, or "last_cycle",
        which repeats the last one of the same position in a cycle, such as the same weekday.
    params : dict
        Hyper-parameters that were tried; the cycle of "last_cycle".
    n_components : int
        0 for "last_value" and "last_cycle".
    errors : array, (n_splits,)
        Error per held-out entry, averaged over the starts.
    ratio : float
        Held-out over training entries, a measure of how much the splits overlap.
    """

    chain: str
    params: Settings
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
        if self.chain == LAST_VALUE:
            return "repeating the last value"
        if self.chain == LAST_CYCLE:
            return f"repeating the last {_cycle_text(self.params['cycle'])}"
        name = "plain NMF" if self.chain == _PLAIN else self.chain
        params = [
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.params.items()
        ]
        inside = f"({', '.join(params)})" if params else ""
        return f"{name}{inside} with {counted(self.n_components, 'component')}"


@dataclass(frozen=True)
class Selection:
    """Result of `select`.

    Attributes
    ----------
    candidates : list of Candidate
        All settings that were tried, and, if steps were hidden, "last_value" and, if the data have
        a season or the calendar suggests one, "last_cycle".
    best : Candidate
        The one chosen by the rule.
    model : TemporalNMF
        Fitted with that setting to all of the data.
    rule : {"one_se", "lowest"}
    n_fits, n_unconverged : int
        Number of fits, and of those that stopped at max_iter.
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
        """The result in words."""
        best, lowest = self.best, self.lowest
        words = [f"Chosen: {best}, held-out error {best.mean:.4g} per entry."]
        if best is not lowest:
            simpler = "the chosen setting is simpler and within one standard error of it"
            words.append(f"The lowest error is {lowest.mean:.4g}, of {lowest}; {simpler}.")
        plain, naive = self.best_of(_PLAIN), [c for c in self.candidates if c.chain in NAIVE]
        if plain is not None and best.chain != _PLAIN:
            words.append(_comparison(best, plain, "plain NMF"))
        words += [_comparison(best, rival, str(rival)) for rival in naive]
        chains = [c for c in self.candidates if c.chain not in (*_WITHOUT_TIME, *NAIVE)]
        simple = [c for c in self.candidates if c.chain in _WITHOUT_TIME]
        if chains and _lowest(chains).mean >= _lowest(simple).mean:
            found = f"{_lowest(simple)} here ({_lowest(chains)} has {_lowest(chains).mean:.4g})"
            words.append(f"No chain does better than {found}: modelling time does not help.")
        if naive and (rival := _lowest(naive)).mean <= best.mean:
            words.append(f"{str(rival).capitalize()} does as well or better: use it instead.")
        if self.n_unconverged:
            fits = f"{self.n_unconverged} of {self.n_fits} fits"
            words.append(f"{fits} ended at max_iter without converging.")
        chosen = "The setting was chosen by these errors: expect slightly larger ones on new data."
        return " ".join([*words, chosen])

    def to_frame(self) -> pd.DataFrame:
        """All candidates as a pandas frame, the lowest error first."""
        return pd.DataFrame(self.rows()).sort_values("error", kind="stable", ignore_index=True)

    def rows(self) -> list[dict[str, str | int | float | bool]]:
        """One row per candidate, in the order in which they were tried."""
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

    def plot(self, ax: Axes | None = None) -> Axes:
        """Error by number of components if several were tried, else one row per candidate.

        Bars are ± one standard error.

        Returns
        -------
        matplotlib Axes
        """
        from ..plotting import plot_selection

        return plot_selection(self, ax)


def select(
    X: Data,
    *,
    mask: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    chains: Chains = "all",
    n_components: int | Iterable[int] = 5,
    splitter: Splitter | None = None,
    n_init: int = 1,
    rule: str = "one_se",
    n_jobs: int | None = None,
    client: Client | None = None,
    random_state: RandomState = None,
    progress: Progress | None = None,
    **params: Any,
) -> Selection:
    """Choose chain, hyper-parameters and number of components by their errors on held-out data.

    Parameters
    ----------
    X : array, frame, xarray array, sparse matrix, TimeTable or path, (n_times, n_features)
        As in `TemporalNMF.fit`: rows labelled with dates or numbers are put on a regular grid.
    mask : array, (n_times,) or (n_times, n_features), default=None
        1 or True: observed, 0 or False: missing, which is not scored; no other weights.
    exposure : array, (n_times,), default=None
        Exposure of each step; predictions are exposure times rate.
    chains : "all", str, Chain, a sequence of them, or dict, default="all"
        A name stands for a small grid around the defaults, a Chain for itself; a dict maps names
        to lists of hyper-parameters. Plain NMF is always tried.
    n_components : int or iterable of int, default=5
    splitter : splitter, default=None
        From `temporalnmf.selection`; None is `HiddenSteps(n_splits=5)`.
    n_init : int, default=1
        Random starts per split; their errors are averaged.
    rule : {"one_se", "lowest"}, default="one_se"
        "lowest" takes the lowest mean error. "one_se" takes the fewest components, and among
        those the lowest error, of the settings whose error exceeds the lowest by at most one
        standard error of the difference over the splits, corrected for their overlap. If chains
        compete with plain NMF, settings with a higher error than plain NMF's lowest are excluded.
    n_jobs : int or None, default=None
        Processes; the result does not depend on it.
    client : distributed.Client or None, default=None
        A Dask cluster for the fits, instead of `n_jobs`; see `temporalnmf.cluster`.
    random_state : int, RandomState instance or None, default=None
    progress : callable or None, default=None
        Called with the number of fits done and in total.
    **params
        Further parameters of `TemporalNMF`, such as `season`, `trend` and `holidays`; and
        `covariates`, as in its method `fit`. A season, or trend, that is "auto" is chosen once, by
        short fits of the default chain to all of the data, hidden steps included, and then used by
        all candidates and by the refit. Plain NMF has none of these.

    Returns
    -------
    Selection

    Notes
    -----
    All fits of a split start from the same seed, so results do not depend on what else is tried,
    or in which order. The error is the Kullback–Leibler error per held-out entry, or the
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
        raise ArgumentError("n_jobs", n_jobs, Text("and {client=}: give only one of them."))
    for name in _NOT_HERE:
        if name in params:
            problem = "cannot be set here: select makes many fits."
            raise ArgumentError(name, params[name], problem, Text("Chains go into {chains=}."))
    covariates = params.pop("covariates", None)
    tried = list(product(_settings(chains), _ranks(n_components)))
    random = check_random_state(random_state)
    splitter = HiddenSteps(random_state=random) if splitter is None else splitter
    data = gridded(X, mask, exposure, params.get("likelihood", "poisson"), covariates)
    splits = list(splitter.split(data.X))
    terms = _terms(data, params, [name for (name, _), _ in tried])
    if terms is not None:
        params = {**params, "season": terms.season, "trend": terms.trend}
    seeds = random.randint(2**31 - 1, size=(len(splits), n_init)).tolist()
    work = [
        Task(*setting, K, i, seed)
        for setting, K in tried
        for i, starts in enumerate(seeds)
        for seed in starts
    ]
    shared = data, splits, params
    found, n_unconverged = _scored(shared, work, n_jobs, client, progress)
    errors = found.reshape(len(tried), len(splits), n_init).mean(axis=2)
    ratio = float(np.mean([split.hidden.sum() / split.train.sum() for split in splits]))
    candidates = []
    for ((name, setting), K), by_split in zip(tried, errors, strict=True):
        shown = setting.get_params() if isinstance(setting, Chain) else dict(setting)
        candidates.append(Candidate(name, shown, K, by_split, ratio))
    if splits[0].train.ndim == 1:
        candidates += _naive(shared, ratio)
    best = choose(candidates, rule)
    model = _refitted(best, data, params, seeds[0][0])
    plain = best.chain == _PLAIN
    with without(TimesWarning):  # `gridded` has warned
        model.fit(X, mask=mask, exposure=exposure, covariates=None if plain else covariates)
    if terms is not None and not plain:
        model._give_reasons(terms.season_reason, terms.trend_reason)
    return Selection(candidates, best, model, rule, len(work), n_unconverged)


def _terms(data: Gridded, params: Parameters, names: Sequence[str]) -> Terms | None:
    """The seasons and the trend of all candidates; None if all of them are plain NMF."""
    if any(name != _PLAIN for name in names):
        return chosen_terms(data, TemporalNMF(**params))
    given = {name: params.get(name) for name in ("trend", "holidays")}
    given["covariates"] = data.covariates
    for name, value in given.items():
        if value is not None:
            problem = "has no effect: plain NMF, the only model here, has free activations."
            shown = list(data.covariates.names) if data.covariates is not None else value
            remedy = Text("Try other {chains=} as well, or leave it out.")
            raise ArgumentError(name, shown, problem, remedy)
    return None


def _refitted(best: Candidate, data: Gridded, params: Parameters, seed: int) -> TemporalNMF:
    """The model of the chosen setting, for a fit to all of the data."""
    every = np.ones(len(data.exposure), dtype=bool)
    level = mean_activation(data.X, every, best.n_components, data.exposure)
    chain, params = _chain(best.chain, best.params, level), _params_for(best.chain, params)
    return TemporalNMF(best.n_components, chain=chain, random_state=seed, **params)


Setting = tuple[str, Settings | Chain]  # name of a chain, and its hyper-parameters or the chain
Outcome = tuple[float, bool]  # error per held-out entry, and whether the fit converged
Shared = tuple[Gridded, Sequence[Split], Parameters]


class Task(NamedTuple):
    """One fit."""

    chain: str
    setting: Settings | Chain
    n_components: int
    split: int
    seed: int


def _ranks(n_components: int | Iterable[int]) -> list[int]:
    ranks = list(n_components) if isinstance(n_components, Iterable) else [n_components]
    if not ranks:
        raise ValueError("n_components is empty: give at least one number of components.")
    return [check_count("n_components", K) for K in ranks]


def _settings(chains: Chains) -> list[Setting]:
    """Settings to try, with plain NMF among them."""
    if isinstance(chains, str | Chain):
        chains = list(OUR_GRIDS) if chains == "all" else [chains]
    found: list[Setting] = []
    if isinstance(chains, Mapping):
        for name, grid in chains.items():
            check_choice("chains", name, tuple(registry.CHAINS))
            settings = [(name, setting) for setting in grid]
            if not settings:
                problem = f": give at least one setting for {name!r}, such as {{}}."
                raise ArgumentError("chains", chains, problem)
            found += settings
    else:
        for chain in chains:
            if isinstance(chain, Chain):
                check_choice("chains", chain.name, tuple(registry.CHAINS))
                found.append((chain.name, chain))
            else:
                check_choice("chains", chain, tuple(OUR_GRIDS))
                found += [(chain, setting) for setting in OUR_GRIDS[chain]]
    return found if any(name == _PLAIN for name, _ in found) else [(_PLAIN, {}), *found]


def _chain(name: str, setting: Settings | Chain, level: float) -> Chain:
    if isinstance(setting, Chain):
        return setting
    chain: Chain = registry.create(registry.CHAINS, name, "chains")
    return chain.set_params(**in_units(setting, level))


def _scored(
    shared: Shared,
    work: Sequence[Task],
    n_jobs: int | None,
    client: Client | None,
    progress: Progress | None,
) -> tuple[Array, int]:
    """Errors of all tasks, and how many of the fits did not converge."""
    outcomes: Iterator[tuple[int, Outcome]]
    if client is not None:
        outcomes = spread(client, outcome, shared, work)
    else:
        jobs = (delayed(outcome)(shared, *task) for task in work)
        outcomes = enumerate(Parallel(n_jobs, return_as="generator", **that_end_with_us())(jobs))
    errors, n_unconverged = np.full(len(work), np.nan), 0
    for n_done, (i, (error, converged)) in enumerate(outcomes, start=1):
        errors[i] = error
        n_unconverged += not converged
        if progress is not None:
            progress(n_done, len(work))
    return errors, n_unconverged


def _params_for(name: str, params: Parameters) -> Parameters:
    """Plain NMF has no effects, and no posterior to draw from: it is fitted as a mode."""
    if name != _PLAIN:
        return params
    params = {**params, **NO_EFFECTS}
    if solver_name(params.get("solver", "")) in registry.SAMPLERS:
        return {**params, "solver": "accelerated"}
    return params


def outcome(
    shared: Shared, name: str, setting: Settings | Chain, n_components: int, split: int, seed: int
) -> Outcome:
    """Fit a model to the training data of a split and score it."""
    data, splits, params = shared
    # A copy, since kernels would be compiled again for the read-only memory of worker processes.
    X = data.X.copy() if sparse.issparse(data.X) else np.array(data.X)
    data, exposure = data._replace(X=X), data.exposure
    train, hidden = splits[split].train, splits[split].hidden
    level = mean_activation(X, train, n_components, exposure)
    params, chain = _params_for(name, params), _chain(name, setting, level)
    model = TemporalNMF(n_components, chain=chain, random_state=seed, **params)
    with without(Warning):  # fits that did not converge are counted
        known = None if name == _PLAIN else data.known
        model.fit(data.table, mask=train, exposure=exposure, covariates=known)
    error = _held_out_error(X, expected_steps(model), hidden, model.likelihood)
    return error, bool(model.converged_)


def _held_out_error(
    X: Matrix, predicted: Array, hidden: Array, likelihood: str | Likelihood
) -> float:
    """Error per hidden entry."""
    values = dense(X)
    seen = (hidden if hidden.ndim == 2 else hidden[:, None]) & ~np.isnan(values)
    return error_of(likelihood)(values[seen], predicted[seen]) / int(seen.sum())


def _smoothing(params: Parameters) -> float:
    """Smoothing for forecasts without components; the centre of its prior if it is learned."""
    given = TemporalNMF(**params).smoothing
    return SMOOTHING if isinstance(given, str) else float(given)


def _naive(shared: Shared, ratio: float) -> list[Candidate]:
    """The predictions without a model: by the last value, and, with a cycle, by the last cycle."""
    data, splits, params = shared
    model, smoothing = TemporalNMF(**params), _smoothing(params)
    clock, found = data.timeline.clock, []
    for name, one in ((LAST_VALUE, None), (LAST_CYCLE, cycle_of(model.season, clock))):
        if name == LAST_CYCLE and one is None:
            continue
        errors = []
        for split in splits:
            given = data.X, split.train, smoothing, data.exposure
            predicted = (
                last_values(*given)
                if one is None
                else last_cycles(*given, positions_in(one, clock))
            )
            errors.append(_held_out_error(data.X, predicted, split.hidden, model.likelihood))
        settings = {} if one is None else {"cycle": one.name}
        found.append(Candidate(name, settings, 0, np.array(errors), ratio))
    return found


def _cycle_text(name: Parameter) -> str:
    """A cycle in words: week, or cycle of 7 steps."""
    return str(name) if name in CYCLES else f"cycle of {name}"


def _models(candidates: Sequence[Candidate]) -> list[Candidate]:
    return [c for c in candidates if c.chain not in NAIVE]


def _lowest(candidates: Sequence[Candidate]) -> Candidate:
    """The candidate with the lowest mean error; NaN counts as infinite."""
    return min(candidates, key=_rank)


def _rank(candidate: Candidate) -> tuple[float, int, str, str]:
    """Order by mean error; ties do not depend on the order of the grid."""
    error = np.inf if np.isnan(candidate.mean) else candidate.mean
    return error, candidate.n_components, candidate.chain, str(sorted(candidate.params.items()))


def choose(candidates: Sequence[Candidate], rule: str) -> Candidate:
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
    """Comparison of the chosen setting with another."""
    if other.mean == 0.0:
        return f"The error of {title} is 0."
    gain = 100.0 * (1.0 - best.mean / other.mean)
    won, n = int(np.sum(best.errors < other.errors)), len(best.errors)
    than = f"{gain:.1f} % lower than" if gain >= 0 else f"{-gain:.1f} % higher than"
    return f"That is {than} {title} ({other.mean:.4g}), lower in {won} of {n} splits."
