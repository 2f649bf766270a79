"""From a fitted model to steps it has not seen: forecast and smooth."""

from __future__ import annotations

import copy
from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._typing import Array
from ..chains.base import Chain
from ..data.aligning import aligned_ahead
from ..data.series import Series
from ..data.validation import check_exposure
from ..inference.gaps import draw_steps, fitted_steps
from ..inference.laplace import Posterior, laplace
from ..messages.arguments import check_choice, check_count
from ..messages.formatting import level_text, percent
from ..summary import component_names
from ..timeline.grid import time_texts
from .activations import draw_activations, infer
from .forecast import DrawnComponents, Forecast, Note, check_coverage, few_beyond, samples_for
from .futures import Futures, Mixture

if TYPE_CHECKING:
    from ..sampling.draws import PosteriorDraws

# Numbers in the draws of a smoothed series, at the most.
_MOST = 20_000_000
# Samples where nobody says how many, and as many as they may become where intervals are wide.
_N_SAMPLES, _MOST_SAMPLES = 1000, 100_000

NO_LAW = Note(
    "Plain NMF (chain='none') has no law for steps it has not seen, so there are no intervals: "
    "choose a chain, such as 'rate'.",
    plain="This kind of model, plain NMF, does not say how sure it is: there are no intervals.",
)
_NOT_CHECKED = Note(
    "Intervals assume the model is correct; model.calibrate() compares them with past forecasts, "
    "and widens them where they are too narrow.",
    plain="These intervals assume the model is correct; they were not compared with past "
    "forecasts.",
    command="Intervals assume the model is correct; temporalnmf fit --calibrate 20 compares them "
    "with past forecasts, and widens them where they are too narrow.",
)


def forecast(
    model: Any,
    steps: int,
    coverage: Any,
    exposure: Any,
    point: Any,
    n_samples: int | None,
    seed: Any,
) -> Forecast:
    """The steps after the last; see `TemporalNMF.forecast`."""
    steps, coverage, seed = check_count("steps", steps), check_coverage(coverage), _check_seed(seed)
    n_samples = _n_samples(n_samples, coverage, steps * model.activations_.shape[1])
    point = model.point if point is None else point
    check_choice("point", point, ("mean", "mode"))
    assumed = exposure is None and bool(np.any(model.exposure_ != 1.0))
    if assumed:
        exposure = float(model.exposure_[-1])
    if np.ndim(exposure) == 0 and not isinstance(exposure, str | None):
        exposure = np.full(steps, exposure)
    size = check_exposure(aligned_ahead(exposure, model.timeline_, steps), steps)
    N = len(model.activations_)
    futures = _futures_of_draws if model.posterior_ is not None else _futures
    future = futures(model, steps, point, n_samples, np.random.default_rng([seed, N]))
    times = model.timeline_.following(steps)
    unseen = N - 1 - int(np.flatnonzero(model.observed_)[-1])
    ahead = unseen + np.arange(1, steps + 1)
    return Forecast(
        times=times,
        activations=future.activations,
        exposure=size,
        observed=np.zeros(steps, dtype=bool),
        point=future.point,
        ahead=ahead,
        coverage=coverage,
        notes=(
            *(_assumed(size[0]) if assumed else ()),
            *_notes(model),
            *_short(model, ahead),
            *_horizon(model, ahead),
            *_seasons(model),
            *_fates(model, future.start, future.draws, times),
            *_few(future.draws, coverage),
        ),
        futures=_simulated(model, future.draws, future.which, size, ahead, seed, N),
        drawn=future.drawn,
        **_shared(model),
    )


def _n_samples(n_samples: int | None, coverage: tuple[float, ...], numbers: int) -> int:
    """As many as the user wants, or as the ends of the widest interval take."""
    if n_samples is not None:
        return check_count("n_samples", n_samples)
    most = min(_MOST_SAMPLES, max(_N_SAMPLES, _MOST // numbers))
    return min(max(_N_SAMPLES, samples_for(max(coverage))), most)


def _few(draws: Array | None, coverage: tuple[float, ...]) -> list[Note]:
    """A word on intervals that end among the last few samples."""
    # From a single sample nobody wants intervals.
    if draws is None or len(draws) == 1:
        return []
    if (1.0 - max(coverage)) / 2.0 >= few_beyond(len(draws)) - 1e-9:
        return []
    text = (
        f"The ends of {level_text(max(coverage))} intervals are uncertain: they were found from "
        f"{len(draws):,} samples."
    )
    wanted = samples_for(max(coverage))
    return [
        Note(
            f"{text} Ask for more, n_samples={wanted}.",
            plain=text,
            command=f"{text} Ask for more, --samples {wanted}.",
        )
    ]


class _Future(NamedTuple):
    """Steps to come: their point (steps, K), draws (S, steps, K) and where these begin (K,).

    Where components are known by draws, `which` (S,) says which goes with each draw.
    """

    activations: Array
    point: str
    draws: Array | None
    start: Array
    drawn: DrawnComponents | None = None
    which: Array | None = None


def _futures(model: Any, steps: int, point: Any, n_samples: int, rng: Any) -> _Future:
    """From a posterior mode."""
    chain, N = model.chain_, len(model.activations_)
    H = chain.point_forecast(model.activations_[-1], steps, point, model.map_scale)
    draws, start = None, np.empty(0)
    if chain.name != "none":
        since = N - 1 - int(model._kept[-1])
        state = posterior_of(model).last
        start = state.activations[0]
        draws = draw_steps(state, np.zeros(1, int), since + steps + 1, chain, n_samples, rng)
        draws = draws[:, since + 1 :]
    return _Future(np.ascontiguousarray(H.T), _point_name(model, point), draws, start)


def _futures_of_draws(model: Any, steps: int, point: Any, n_samples: int, rng: Any) -> _Future:
    """From draws: nothing is taken as known."""
    posterior: PosteriorDraws = model.posterior_
    if point != "mean":
        raise ValueError(f"point={point!r}: draws have a mean and no mode. Take point='mean'.")
    since = len(model.activations_) - 1 - int(model._kept[-1])
    which, numbers = posterior.pick(n_samples), np.arange(posterior.n_draws)
    draws = posterior.paths_ahead(which, since + steps, rng)[:, since:]
    expected = posterior.means_ahead(numbers, since + steps)[:, since:]
    name = "posterior mean"
    if not posterior.chain.dynamic:
        name = "last value (posterior mean of the last observed step)"
    elif not posterior.has_means:
        name = "median of the draws (the mean is infinite)"
    start = posterior.flat("activations")[:, -1].mean(axis=0)
    drawn = DrawnComponents(posterior.flat("components"), numbers, expected)
    return _Future(expected.mean(axis=0), name, draws, start, drawn, which)


def smooth(
    model: Any, series: Series | None, coverage: Any, n_samples: int | None, seed: Any
) -> Forecast:
    """All steps of a series, the fitted one by default; see `TemporalNMF.smooth`."""
    coverage, seed = check_coverage(coverage), _check_seed(seed)
    n_samples = _n_samples(n_samples, coverage, model.activations_.size)
    if model.posterior_ is not None:
        return _smooth_draws(model, series, coverage, n_samples, seed)
    chain, posterior = model.chain_, None
    if series is None:
        H, kept, observed = model.activations_.T, model._kept, model.observed_
        timeline, exposure = model.timeline_, model.exposure_
        if chain.name != "none":
            posterior = posterior_of(model)
    else:
        assert series.timeline is not None
        H, timeline, exposure = infer(model, series), series.timeline, series.exposure
        observed = series.observed
        kept = fitted_steps(observed, chain, model.point)
        if chain.name != "none":
            posterior = _posterior(model, series.take(kept), H[:, kept])
    K, N = H.shape
    draws = None
    if posterior is not None:
        n_samples = min(n_samples, max(100, _MOST // (N * K)))
        rng = np.random.default_rng([seed, 0])
        draws = draw_steps(posterior, kept, N, chain, n_samples, rng)
    ahead = _since_observed(observed)
    return Forecast(
        times=timeline.times,
        activations=np.ascontiguousarray(H.T),
        exposure=exposure,
        observed=observed,
        point=_smooth_name(
            "posterior mean" if model.map_scale == "log" and chain.dynamic else "posterior mode",
            chain,
            observed,
        ),
        ahead=ahead,
        coverage=coverage,
        notes=(*_notes(model), *_short(model, ahead), *_few(draws, coverage)),
        futures=_simulated(model, draws, None, exposure, ahead, seed, 0),
        **_shared(model),
    )


def _smooth_draws(
    model: Any, series: Series | None, coverage: tuple[float, ...], n_samples: int, seed: int
) -> Forecast:
    """All steps, from draws."""
    posterior: PosteriorDraws = model.posterior_
    if series is None:
        timeline, exposure, observed = model.timeline_, model.exposure_, model.observed_
        N, K = model.activations_.shape
        # What is expected does not hang on how many samples one wants.
        most = min(max(100, _MOST // (N * K)), posterior.n_draws)
        which, numbers = posterior.pick(min(n_samples, most)), posterior.pick(most)
        rng = np.random.default_rng([seed, 0])
        draws = posterior.steps(which, model._kept, N, rng)
        expected = posterior.expected_steps(numbers, model._kept, N)
    else:
        assert series.timeline is not None
        timeline, exposure, observed = series.timeline, series.exposure, series.observed
        numbers, draws, expected = draw_activations(model, series)
        which = numbers
    drawn = DrawnComponents(posterior.flat("components"), numbers, expected)
    ahead = _since_observed(observed)
    return Forecast(
        times=timeline.times,
        activations=expected.mean(axis=0),
        exposure=exposure,
        observed=observed,
        point=_smooth_name("posterior mean", posterior.chain, observed),
        ahead=ahead,
        coverage=coverage,
        notes=(*_notes(model), *_short(model, ahead), *_few(draws, coverage)),
        futures=_simulated(model, draws, which, exposure, ahead, seed, 0),
        drawn=drawn,
        **_shared(model),
    )


def expected_rows(
    model: Any, series: Series, *, continue_chain: bool = False
) -> Callable[[int], Array]:
    """What a model expects of each step of a series, as a function of the step: (F,)."""
    if model.posterior_ is None:
        H = infer(model, series, continue_chain=continue_chain)
        return lambda n: series.exposure[n] * (H[:, n] @ model.components_)
    numbers, _, expected = draw_activations(model, series, continue_chain)
    drawn = DrawnComponents(model.posterior_.flat("components"), numbers, expected)
    return lambda n: series.exposure[n] * drawn.at(np.array([n])).values()[0]


def _point_name(model: Any, point: Any) -> str:
    """On the linear scale the chain goes on from another mode than the draws do."""
    name = model.chain_.point_name(point)
    linear = model.map_scale == "linear" and model.chain_.dynamic
    return f"{name} from the mode of h" if linear else name


def _smooth_name(name: str, chain: Chain, observed: Array) -> str:
    """Without dynamics nothing but its neighbours is known of a missing step."""
    return name if chain.dynamic or observed.all() else f"{name}; missing steps interpolated"


def data_of(model: Any, what: str) -> Series:
    """The data of the fit, where they are at hand."""
    if model._series is not None and model._series.fingerprint() != model._fingerprint:
        raise ValueError(
            "X was changed after the fit, and the model refers to it. Fit again, or fit a copy: "
            "model.fit(X.copy())."
        )
    if model._series is None:
        raise ValueError(
            f"{what} needs the data of the fit, and these are not at hand: the file of this model "
            f"was saved without them (data=False), or they were never in memory (Dask, shards). "
            f"Fit again, or save with data=True."
        )
    return model._series


def posterior_of(model: Any) -> Posterior:
    """The posterior of the fitted steps, made when it is first wanted."""
    if model._posterior is None:
        kept = model._kept
        used = data_of(model, "this").take(kept)
        model._posterior = _posterior(model, used, model.activations_.T[:, kept])
    return model._posterior


def _posterior(model: Any, used: Series, H: Array) -> Posterior:
    if model.map_scale != "log":
        # The quadratic stands at the mode of log h.
        H = infer(copy.copy(model).set_params(map_scale="log"), used)
    return laplace(used, model.components_.T, H, model.chain_, model._likelihood())


def _shared(model: Any) -> dict[str, Any]:
    return {
        "components": model.components_,
        "feature_names": model.feature_labels(),
        "component_names": component_names(model),
        "calibration": model.calibration_,
    }


def _simulated(
    model: Any,
    draws: Array | None,
    which: Array | None,
    exposure: Array,
    ahead: Array,
    seed: int,
    first: int,
) -> Futures | None:
    """Futures from draws (S, T, K) of the activations; `first` is the place of the first step."""
    if draws is None:
        return None
    components, dispersion = model.components_, 0.0
    if which is not None:
        components = model.posterior_.flat("components")
    if model.calibration_ is not None:
        noise = model.calibration_.noise
        draws = noise.widen(draws, ahead, np.random.default_rng([seed, first, _WIDENED]))
        dispersion = noise.dispersion
    steps = draws.shape[1]
    return Futures(
        activations=draws,
        exposure=exposure,
        mixture=Mixture(components, len(draws), which),
        likelihood=model._likelihood(),
        streams=np.column_stack([np.full(steps, seed), first + np.arange(steps)]),
        dispersion=dispersion,
    )


# Purpose of random numbers, beside those of `Futures`.
_WIDENED = 1


def _check_seed(seed: Any) -> int:
    if seed is None:
        return int(np.random.default_rng().integers(2**31))
    if not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0:
        raise ValueError(f"random_state={seed!r}: expected a whole number of at least 0, or None.")
    return int(seed)


def _since_observed(observed: Array) -> Array:
    """Distance to the last observed step, or to the first one for leading steps."""
    steps = np.arange(len(observed))
    seen = np.flatnonzero(observed)
    before = np.searchsorted(seen, steps, side="right") - 1
    return np.where(before >= 0, steps - seen[np.maximum(before, 0)], seen[0] - steps)


def _notes(model: Any) -> tuple[Note, ...]:
    chain = model.chain_
    if chain.name == "none":
        return (NO_LAW,)
    notes: tuple[Note, ...] = ()
    if model.posterior_ is not None and not model.posterior_.diagnosis.ok:
        found = model.posterior_.diagnosis
        settled = {q.name for q in found.quantities if q.settled(found.n_runs)}
        plain = "The runs of draws behind this do not agree yet: take the numbers as a sketch."
        if {"totals", "forecasts"} <= settled:
            plain = "The runs of draws behind this agree on totals and forecasts, not on all else."
        notes = (Note(found.verdict, plain=plain),)
    if not chain.dynamic:
        notes = (
            *notes,
            Note(
                f"Steps are independent of each other under {chain.name!r}: the point repeats the "
                f"last value or interpolates, as in the paper, and the intervals are those of any "
                f"step around the long-run level."
            ),
        )
    return notes if model.calibration_ is not None else (*notes, _NOT_CHECKED)


def _assumed(size: float) -> list[Note]:
    """A word on the exposure of a future that nobody gave one."""
    text = (
        f"The model has rates, and no exposure was given for the future: that of the last step, "
        f"{size:g}, is taken to go on."
    )
    return [Note(text, command=f"{text} --exposure sets another.")]


def _short(model: Any, ahead: Array) -> list[Note]:
    """A word on intervals that hold less than they promise after calibration, too."""
    found = model.calibration_
    if found is None or model.chain_.name == "none":
        return []
    short = found.short(range(1, max(int(ahead.max()), 1) + 1))
    if not short:
        return []
    held = ", ".join(f"{check.name} {check.share(check.after)}" for check in short)
    return [
        Note(
            f"Compared with past forecasts, {level_text(found.coverage)} intervals are too narrow "
            f"after calibration as well. Inside: {held}."
        )
    ]


def _horizon(model: Any, ahead: Array) -> list[Note]:
    """A word on steps beyond those that calibration checked."""
    found, last = model.calibration_, int(ahead[-1])
    if found is None or model.chain_.name == "none" or last <= max(found.horizons):
        return []
    checked = max(found.horizons)
    text = (
        f"Intervals were checked {checked} step{'' if checked == 1 else 's'} ahead, and this is "
        f"{last}: later ones may be too narrow."
    )
    return [
        Note(
            f"{text} model.calibrate(steps={last}) checks them all.",
            plain=text,
            command=f"{text} temporalnmf fit --calibrate 20 --calibrate-steps {last} checks them "
            f"all.",
        )
    ]


# Steps after which a season comes round.
_SEASONS = {"month": 12, "quarter": 4, "3 months": 4, "week": 52, "day": 7, "hour": 24}
# Correlation of changes over one season from which on it is named, and the least spread of changes
# of log totals: a solver that stops early leaves smaller ones in constant data.
_SEASONAL, _LEAST_SPREAD = 0.4, 1e-3


def _seasons(model: Any) -> list[Note]:
    """A note on changes that repeat every season, which no chain models."""
    every, last = model.timeline_.every, time_texts(model.times_)[-1]
    length = _SEASONS.get(every)
    totals = (model.activations_.sum(axis=1) * model.exposure_)[model.observed_.argmax() :]
    if length is None or len(totals) < 3 * length:
        return []
    change = np.diff(np.log(np.maximum(totals, 1e-300)))
    pair = np.stack([change[length:], change[:-length]])
    if pair.std(axis=1).min() < _LEAST_SPREAD:
        return []
    correlation = float(np.corrcoef(pair)[0, 1])
    if correlation <= _SEASONAL:
        return []
    step = every if every[0].isdigit() else f"one {every}"
    text = (
        f"The series has seasons: its changes repeat after {length} steps of {step} (correlation "
        f"{correlation:.2f}). No chain models seasons: the forecast goes on from the level of the "
        f"last step ({last}), whatever its season."
    )
    remedy = f"fit totals of whole seasons ({length} steps each), or repeat the last season."
    return [Note(f"{text} For forecasts without this error, {remedy}", plain=text)]


# Of the last value: below, or above, it a path counts as collapsed or exploded.
_COLLAPSED, _EXPLODED = 0.1, 10.0


def _fates(model: Any, start: Array, draws: Array | None, times: Array) -> list[Note]:
    """A word on each component that collapses or explodes within the horizon, at its end."""
    if draws is None or not model.chain_.dynamic:
        return []
    end = draws[:, -1]
    regimes = model.chain_.regime()
    when, found = time_texts(times)[-1], []
    for k in range(end.shape[1]):
        low, high = (
            np.mean(end[:, k] < _COLLAPSED * start[k]),
            np.mean(end[:, k] > _EXPLODED * start[k]),
        )
        if max(low, high) < 0.1:
            continue
        what, share = ("collapses", low) if low >= high else ("explodes", high)
        limit = "falls below a tenth of" if low >= high else "exceeds ten times"
        regime = regimes[k] if isinstance(regimes, list) else regimes
        fate = f"{what}: by {when} it {limit} its last value in {percent(share)} of the futures."
        text = f"Component {k + 1} {fate} In the long run: {regime}"
        found.append(Note(text, plain=f"“{component_names(model)[k]}” {fate}"))
    return found
