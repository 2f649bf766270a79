"""What a report says: from a fitted model to one plain dictionary that JSON can hold.

Words, tables and curves are made here; the template only lays them out. A number that is not
finite becomes None, and curves are rounded and thinned so that a long series stays a small file.
"""

from __future__ import annotations

import hashlib
import platform
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from ..likelihoods.base import Array
from ..summary import component_summary, step_errors
from ..timeline import time_texts

# Numbers of a chart that are told to the file, about seven bytes each.
_MOST_NUMBERS = 90_000
_MOST_POINTS = 2_000
# Simulated numbers held at a time, 8 bytes each.
_MOST_SIMULATED = 5_000_000
# Rows of a table of gaps, and characters of a name.
_MOST_ROWS = 40
_LONGEST_NAME = 80
_WORST = 5
_COVERAGE = (0.5, _WIDE := 0.9)

# Least stability of a component that is found again, and of one that varies.
_FOUND_AGAIN, _VARIES = 0.9, 0.6
# Movement found over movement expected, beyond which one is told that they differ.
_LIVELY = 1.25


def report_content(
    model: Any,
    *,
    question: str | None = None,
    command: str | Sequence[str] | None = None,
    steps: int | None = None,
    forecast: Any = None,
    hold_out: dict[str, Any] | None = None,
    n_features: int = 12,
    source: Any = None,
) -> dict[str, Any]:
    """All that a report says, ready for a template or for JSON; see `write_report`.

    Examples
    --------
    >>> from temporalnmf import TemporalNMF
    >>> from temporalnmf.datasets import load_sotu
    >>> from temporalnmf.report import report_content
    >>> model = TemporalNMF(6, random_state=0).fit(load_sotu(as_frame=True).data)
    >>> content = report_content(model, steps=5)
    >>> content["question"]  # doctest: +NORMALIZE_WHITESPACE
    'What are the 6 components of 232 steps (1790 to 2021) of 1,609 features, how did they move,
    and what comes next?'
    >>> content["gaps"]["rows"][0]["when"]
    '1933'
    """
    check_is_fitted(model)
    return _Content(model, steps, forecast, n_features).dictionary(
        question, command, hold_out, source
    )


class _Content:
    """The parts of a report, with what several of them need."""

    def __init__(self, model: Any, steps: int | None, forecast: Any, n_features: int) -> None:
        self.model = model
        self.n_steps, self.n_components = model.activations_.shape
        self.exposed = bool(np.any(np.asarray(model.exposure_) != 1.0))
        self.past = model.smooth(coverage=_COVERAGE, n_samples=self._n_samples())
        self.given = forecast
        if forecast is None and steps != 0:
            forecast = model.forecast(
                _default_steps(self.n_steps) if steps is None else steps,
                exposure=float(model.exposure_[-1]) if self.exposed else None,
            )
        self.ahead = forecast
        self.n_ahead = 0 if forecast is None else len(forecast.times)
        self.texts = [_clean(text) for text in time_texts(model.times_)]
        self.texts_ahead = [_clean(t) for t in time_texts(forecast.times)] if self.n_ahead else []
        self.summary = component_summary(model, n_features=n_features)
        self.names = [_clean(one.name) for one in self.summary]
        self.errors = step_errors(model)
        self.kind, self.positions = self._axis()
        self.kept = self._kept()

    def _n_samples(self) -> int:
        size = self.n_steps * self.n_components
        return int(np.clip(_MOST_SIMULATED // size, 100, 1000))

    def _axis(self) -> tuple[str, Array]:
        """Kind of the axis, and the place of each step on it, those ahead included."""
        times = np.asarray(self.model.times_)
        if self.n_ahead:
            times = np.concatenate([times, np.asarray(self.ahead.times)])
        kind, places = "text", np.arange(len(times), dtype=float)
        if times.dtype.kind == "M":
            kind, places = "date", times.astype("datetime64[ms]").astype(np.int64).astype(float)
        elif times.dtype.kind in "iuf":
            kind, places = "number", times.astype(float)
        # Nothing can be drawn against times that do not rise; then steps are evenly spaced.
        return (kind, places) if np.all(np.diff(places) > 0) else ("text", np.arange(len(times)))

    def _kept(self) -> Array:
        """Steps that are drawn: all of the last ones, of those before every so many, and peaks."""
        most = min(_MOST_POINTS, _MOST_NUMBERS // (3 * self.n_components))
        recent = min(self._window(), most // 2)
        older = self.n_steps - recent
        stride = max(1, -(-older // max(most - recent, 1)))
        peaks = np.argmax(self.model.activations_, axis=0)
        told = [np.arange(0, older, stride), np.arange(older, self.n_steps), peaks, self._worst()]
        return np.unique(np.concatenate(told).astype(int))

    def _worst(self) -> list[int]:
        """The steps with the largest errors, the largest first."""
        if self.errors is None:
            return []
        error = np.asarray(self.errors.error)
        order = np.argsort(np.where(np.isnan(error), -np.inf, error), kind="stable")[::-1]
        return [int(n) for n in order[:_WORST] if np.isfinite(error[n])]

    def _kept_ahead(self) -> Array:
        most = min(_MOST_POINTS, _MOST_NUMBERS // (6 * self.n_components))
        return np.arange(0, self.n_ahead, max(1, -(-self.n_ahead // most)))

    def _window(self) -> int:
        """How many of the last steps stand before a forecast."""
        return min(self.n_steps, max(4 * self.n_ahead, 20))

    def dictionary(
        self, question: str | None, command: Any, hold_out: dict[str, Any] | None, source: Any
    ) -> dict[str, Any]:
        """The whole."""
        name = None if source is None else _clean(Path(str(source)).name)
        content = {
            "title": f"{name or 'Components over time'} · temporalnmf",
            "question": self.question() if question is None else str(question),
            "source": name,
            "span": [self.texts[0], self.texts[-1]],
            "n_steps": self.n_steps,
            "n_features": int(self.model.components_.shape[1]),
            "bands": bool(self.past.has_bands),
            "level": _percent(self._levels()[0]),
            "notes": self._notes(),
            "exposed": self.exposed,
            "components": self.components(),
            "forecast": self.forecast(),
            "gaps": self.gaps(),
            "errors": self.worst_steps(),
            "calibration": self.calibration(hold_out),
            "convergence": self.convergence(),
            "movement": self.movement(),
            "made": self.made(command, source),
            "charts": self.charts(),
        }
        content["answer"] = self.answer(content)
        return content

    def _notes(self) -> list[str]:
        """What is to be said of the past steps; what the forecast says as well stands there."""
        ahead = self.ahead.notes if self.n_ahead else ()
        return [str(note) for note in self.past.notes if note not in ahead]

    def question(self) -> str:
        """The question in words, made from the data."""
        n_features = self.model.components_.shape[1]
        k, one = self.n_components, self.n_components == 1
        asked = (
            f"What {'is the one component' if one else f'are the {k} components'} of "
            f"{self.n_steps:,} steps ({self.texts[0]} to {self.texts[-1]}) of "
            f"{_count(n_features, 'feature')}"
        )
        moved = f"how did {'it' if one else 'they'} move"
        return (
            f"{asked}, {moved}, and what comes next?" if self.n_ahead else f"{asked}, and {moved}?"
        )

    def components(self) -> list[dict[str, Any]]:
        """A card per component."""
        cards = []
        for one, name in zip(self.summary, self.names, strict=True):
            most = max((weight for _, weight in one.top), default=0.0)
            places = _places(min((weight for _, weight in one.top), default=0.0))
            cards.append(
                {
                    "index": one.index,
                    "name": name,
                    "share": f"{_percent(one.share)} of all activation",
                    "peak": _clean(one.peak),
                    "stability": _rounded(one.stability),
                    "stability_words": self._stability_words(one.stability),
                    "shaky": one.stability is not None and bool(one.stability < _FOUND_AGAIN),
                    "top": [
                        {
                            "feature": _clean(feature),
                            "weight": f"{100.0 * weight:.{places}f} %",
                            "length": round(100.0 * weight / most, 1) if most > 0 else 0.0,
                        }
                        for feature, weight in one.top
                    ],
                }
            )
        return cards

    def _stability_words(self, stability: float | None) -> str:
        if stability is None or not np.isfinite(stability):
            return f"not assessed: one start (n_init={getattr(self.model, 'n_init', 1)})"
        if stability >= _FOUND_AGAIN:
            words = "found again in most starts"
        else:
            words = "varies between starts" if stability >= _VARIES else "an accident of the start"
        return f"{words} ({stability:.2f})"

    def answer(self, content: dict[str, Any]) -> list[str]:
        """A few sentences for a reader in a hurry."""
        first = self.summary[0]
        largest = (
            f"The largest component is “{self.names[0]}”: {_percent(first.share)} of all activation"
        )
        if self.n_components == 1:
            largest = f"The one component is “{self.names[0]}”"
        said = [f"{largest}, with its peak at {_clean(first.peak)}."]
        said += self._recent()
        said.append(content["gaps"]["words"])
        if self.n_ahead:
            said.append(self._outlook(content["forecast"]))
        shaky = sum(card["shaky"] for card in content["components"])
        if shaky:
            many, its, it = ("One", "its", "it") if shaky == 1 else (f"{shaky}", "their", "them")
            said.append(
                f"{many} of the {self.n_components} components came out differently in other "
                f"starts: see {its} stability before leaning on {it}."
            )
        if not content["convergence"]["converged"]:
            said.append("The fit had not converged when it stopped: take the numbers as a sketch.")
        return said

    def _outlook(self, forecast: dict[str, Any]) -> str:
        row = forecast["rows"][-1]
        expected = f"For {row['when']} the total is expected to be {row['point']}"
        if not forecast["bands"]:
            return f"{expected}; how sure that is cannot be said, see below."
        low, high = row["bands"][0]
        return (
            f"{expected}, and with a probability of {forecast['bands'][0]} it is {low} to {high}."
        )

    def _recent(self) -> list[str]:
        """Which component rose and which fell most, the last stretch against the one before."""
        H = self.model.activations_
        width = min(max(3, self.n_steps // 20), self.n_steps // 2)
        after, before = H[-width:].mean(axis=0), H[-2 * width : -width].mean(axis=0)
        change = after - before
        up, down = int(np.argmax(change)), int(np.argmin(change))
        said = []
        for k, verb, moved in ((up, "rose", change[up] > 0), (down, "fell", change[down] < 0)):
            # A change that the numbers as written do not show is none.
            if moved and _text(before[k]) != _text(after[k]):
                said.append(
                    f"“{self.names[k]}” {verb} most, on average from {_text(before[k])} to "
                    f"{_text(after[k])}"
                )
        if not said:
            return ["No component has moved of late."]
        stretch = (
            f"In the last {width} steps (since {self.texts[-width]}), against the {width} before, "
        )
        return [stretch + ", and ".join(said) + "."]

    def _levels(self) -> list[float]:
        """Coverages of the bands, the widest first."""
        coverage = self.ahead.coverage if self.n_ahead else self.past.coverage
        return sorted(map(float, coverage), reverse=True)

    def gaps(self) -> dict[str, Any]:
        """Which steps were missing, and what was put there."""
        runs = _runs(~np.asarray(self.model.observed_))
        missing = sum(stop - start for start, stop in runs)
        rows = [self._gap(start, stop) for start, stop in runs[:_MOST_ROWS]]
        if not missing:
            words = f"No step of the {self.n_steps:,} is missing as a whole."
        else:
            named = ", ".join(row["when"] for row in rows[:3])
            more = f" and {_count(len(runs) - 3, 'more gap')}" if len(runs) > 3 else ""
            many = "One step" if missing == 1 else f"{missing:,} steps"
            verb = "was missing and is" if missing == 1 else "were missing and are"
            words = f"{many} of {self.n_steps:,} {verb} filled in: {named}{more}."
        return {"words": words, "rows": rows, "left_out": len(runs) - len(rows)}

    def _gap(self, start: int, stop: int) -> dict[str, Any]:
        H, exposure = self.model.activations_[start:stop], self.model.exposure_[start:stop]
        filled = exposure @ H / (stop - start)
        first, last = self.texts[start], self.texts[stop - 1]
        band = None
        if self.past.has_bands:
            drawn = self.past.at(slice(start, stop)).samples(of="totals").mean(axis=1)
            low, high = np.quantile(drawn, [0.5 - _WIDE / 2, 0.5 + _WIDE / 2])
            band = f"{_text(low)} to {_text(high)}"
        return {
            "when": first if stop - start == 1 else f"{first} to {last}",
            "steps": stop - start,
            "total": _text(filled.sum()),
            "band": band,
            "largest": self.names[int(np.argmax(filled))],
        }

    def forecast(self) -> dict[str, Any] | None:
        """The totals of the steps ahead as a table, and what is to be said of them."""
        if not self.n_ahead:
            return None
        ahead = self.ahead
        bands = []
        if ahead.has_bands:
            bands = [ahead.interval(level, of="totals") for level in self._levels()]
        totals = ahead.point_of("totals")
        rows = [
            {
                "when": self.texts_ahead[s],
                "point": _text(totals[s]),
                "bands": [(_text(low[s]), _text(high[s])) for low, high in bands],
            }
            for s in self._kept_ahead()
        ]
        notes = [str(note) for note in ahead.notes]
        if self.given is None and self.exposed:
            last = _text(self.model.exposure_[-1])
            notes.append(f"Totals ahead are for the exposure of the last step, {last}.")
        return {
            "steps": self.n_ahead,
            "span": [self.texts_ahead[0], self.texts_ahead[-1]],
            "point": str(ahead.point),
            "notes": notes,
            "bands": [_percent(level) for level in self._levels() if bands],
            "rows": rows,
        }

    def worst_steps(self) -> dict[str, Any] | None:
        """The steps that the model describes worst."""
        if self.errors is None:
            return None
        error = np.asarray(self.errors.error)
        usual = float(np.nanmedian(error))
        rows = [
            {
                "when": self.texts[n],
                "error": _text(error[n]),
                "times": _text(error[n] / usual, 2) if usual > 0 else None,
                "observed": _text(self.errors.observed[n]),
                "expected": _text(self.errors.expected[n]),
            }
            for n in self._worst()
        ]
        return {"rows": rows, "usual": _text(usual)}

    def calibration(self, hold_out: dict[str, Any] | None) -> dict[str, Any] | None:
        """How often the truth lay inside, against how often it should."""
        if hold_out is None:
            checked = getattr(self.model, "calibration_", None)
            if checked is None:
                return None
            hold_out = _as_hold_out(checked)
        inside, total = int(hold_out["inside"]), int(hold_out["total"])
        nominal, low, high = (float(hold_out[key]) for key in ("coverage", "low", "high"))
        found = inside / total if total else float("nan")
        places = {"nominal": nominal, "found": found, "low": low, "high": high}
        return {
            "nominal": _percent(nominal),
            "found": _percent(found) if total else "none",
            "inside": f"{inside:,}",
            "total": f"{total:,}",
            "low": _percent(low),
            "high": _percent(high),
            "agrees": low <= nominal <= high,
            "words": str(hold_out.get("words", "")),
            "places": {name: _rounded(100.0 * share) for name, share in places.items()},
        }

    def convergence(self) -> dict[str, Any]:
        """Whether the fit came to an end, in words."""
        model = self.model
        reason = str(model.stop_reason_)
        converged = bool(model.converged_)
        verdict = "Converged." if converged else "Not converged."
        detail = reason.removeprefix("converged: ")
        advice = "" if converged else " Increase max_iter, or accept a larger tol."
        starts = getattr(model, "n_init", 1)
        kept = f" The best of {starts} starts is shown." if starts > 1 else ""
        return {
            "converged": converged,
            "verdict": verdict,
            "words": f"{detail[:1].upper()}{detail[1:]}.{advice}{kept}",
            "objective": _text(model.objective_),
            "error": _text(model.reconstruction_err_),
        }

    def movement(self) -> list[dict[str, Any]] | None:
        """How far components move in a step: as the chain expects it, and as found.

        Both are the standard deviation of log h_{n+1} − log h_n: of draws from the chain that
        start at the fitted activations, and of paths of the posterior.
        """
        chain = self.model.chain_
        if not getattr(chain, "dynamic", True) or not self.past.has_bands or self.n_steps < 3:
            return None
        rng = np.random.default_rng(0)
        starts = rng.choice(self.model.activations_, size=2000)
        expected = _log_changes(np.asarray(chain.sample(len(starts), 2, rng, starts)))
        # A few paths are enough for one number.
        found = _log_changes(np.asarray(self.past.samples(of="components"))[:100])
        rows = []
        for k, name in enumerate(self.names):
            ratio = found[k] / expected[k] if expected[k] > 0 else np.nan
            rows.append(
                {
                    "name": name,
                    "index": k,
                    "expected": _movement_text(expected[k]),
                    "found": _movement_text(found[k]),
                    "words": _movement_words(ratio),
                    "lively": bool(ratio > _LIVELY),
                }
            )
        return rows

    def made(self, command: Any, source: Any) -> dict[str, Any]:
        """How this was made, to the last digit."""
        model = self.model
        if command is None:
            command = f"{model!r}.fit(X)"
        elif not isinstance(command, str):
            command = shlex.join(map(str, command))
        checksums = {"components and activations": _checksum(model.components_, model.activations_)}
        if model._series is not None:
            checksums["data, missing entries as NaN"] = _data_checksum(model._series)
        if source is not None and Path(str(source)).is_file():
            checksums["file of the data"] = _file_checksum(Path(str(source)))
        return {
            "command": command,
            "parameters": {
                name: _value(value) for name, value in model.get_params(deep=False).items()
            },
            "chain": _chain_words(model.chain_),
            "versions": _versions(),
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "checksums": checksums,
        }

    # Curves

    def charts(self) -> dict[str, Any]:
        """What the charts draw."""
        model, kept, ahead = self.model, self.kept, self._kept_ahead()
        drawn = np.concatenate([kept, self.n_steps + ahead]).astype(int)
        texts = [*self.texts, *self.texts_ahead]
        thinned = len(kept) < self.n_steps
        return {
            "kind": self.kind,
            "x": _numbers(self.positions[drawn], 15),
            "text": [texts[n] for n in drawn],
            "past": len(kept),
            "window": min(self._window(), len(kept)),
            "divide": _number(self._edge(self.n_steps), 15) if self.n_ahead else None,
            "gaps": [
                _numbers([self._edge(start), self._edge(stop)], 15)
                for start, stop in _runs(~np.asarray(model.observed_))
            ],
            "thinned": f"{len(kept):,} of {self.n_steps:,} steps are drawn." if thinned else None,
            "components": self._component_curves(kept, ahead),
            "totals": self._total_curves(kept, ahead),
            "errors": None if self.errors is None else _numbers(self.errors.error[kept]),
            "worst": np.searchsorted(kept, sorted(self._worst())).tolist(),
            "trace": {
                "x": _numbers(_thin(model.history_iterations_), 15),
                "y": _numbers(_thin(model.history_), 6),
            },
        }

    def _edge(self, n: int) -> float:
        """The place half-way between step n − 1 and step n; at the ends, half a step outside."""
        x = self.positions
        if n <= 0:
            return float(x[0] - (x[1] - x[0]) / 2)
        if n >= len(x):
            return float(x[-1] + (x[-1] - x[-2]) / 2)
        return float((x[n - 1] + x[n]) / 2)

    def _component_curves(self, kept: Array, ahead: Array) -> list[dict[str, Any]]:
        curves: list[dict[str, Any]] = [
            {"name": name, "y": _numbers(self.model.activations_[kept, k]), "bands": []}
            for k, name in enumerate(self.names)
        ]
        if self.n_ahead:
            for k, curve in enumerate(curves):
                curve["y"] += _numbers(self.ahead.activations[ahead, k])
        for i, level in enumerate(self._levels()):
            low, high = self._band(level, kept if i == 0 else kept[:0], ahead)
            for k, curve in enumerate(curves if len(low) else []):
                # The narrower bands belong to the steps ahead alone.
                start = 0 if i == 0 and self.past.has_bands else len(kept)
                curve["bands"].append(
                    {
                        "level": level,
                        "from": start,
                        "low": _numbers(low[:, k]),
                        "high": _numbers(high[:, k]),
                    }
                )
        return curves

    def _band(self, level: float, kept: Array, ahead: Array) -> tuple[Array, Array]:
        """Lower and upper end (steps, K) of the past steps `kept`, then of those ahead."""
        ends = [np.empty((2, 0, self.n_components))]
        if len(kept) and self.past.has_bands:
            ends.append(np.stack(self.past.interval(level, of="components"))[:, kept])
        if self.n_ahead and self.ahead.has_bands:
            ends.append(np.stack(self.ahead.interval(level, of="components"))[:, ahead])
        low, high = np.concatenate(ends, axis=1)
        return low, high

    def _total_curves(self, kept: Array, ahead: Array) -> dict[str, Any] | None:
        if not self.n_ahead:
            return None
        fitted = self.model.exposure_ * self.model.activations_.sum(axis=1)
        observed = None
        if self.errors is not None:
            # A gap has no observed total.
            seen = np.where(self.model.observed_, self.errors.observed, np.nan)
            observed = _numbers(seen[kept])
        bands = []
        if self.ahead.has_bands:
            for level in self._levels():
                low, high = self.ahead.interval(level, of="totals")
                bands.append(
                    {
                        "level": level,
                        "from": len(kept),
                        "low": _numbers(low[ahead]),
                        "high": _numbers(high[ahead]),
                    }
                )
        future = self.ahead.point_of("totals")[ahead]
        return {
            "observed": observed,
            "model": _numbers(fitted[kept]) + _numbers(future),
            "bands": bands,
        }


def _default_steps(n_steps: int) -> int:
    """A twentieth of the series, at least three steps and at most twelve."""
    return min(max(n_steps // 20, 3), 12)


def _places(least: float) -> int:
    """Decimals that percentages need for two digits of the least of them, four at most."""
    return int(np.clip(-np.floor(np.log10(max(100.0 * least, 1e-9))) + 1, 0, 4))


def _runs(flags: Array) -> list[tuple[int, int]]:
    """Stretches of true values as (start, stop)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(int)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def _thin(values: Any, most: int = 500) -> Array:
    """At most about so many of the values, the last one among them."""
    values = np.asarray(values)
    return values[:: -max(1, -(-len(values) // most))][::-1]


def _log_changes(paths: Array) -> Array:
    """Standard deviation (K,) of log h_{n+1} − log h_n over paths (n_paths, N, K)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.diff(np.log(paths), axis=1)
    change = np.where(np.isfinite(change), change, np.nan)
    return np.nanstd(change, axis=(0, 1))


def _chain_words(chain: Any) -> str:
    """The chain, its numbers and what it does in the long run."""
    if chain.name == "none":
        return "none: plain NMF, which has no law of motion."
    regime = chain.regime()
    regimes = dict.fromkeys(map(str, regime if isinstance(regime, list) else [regime]))
    return f"{chain.name}: {chain.numbers()}. {' '.join(regimes)}"


def _movement_text(sd: float) -> str:
    return (
        f"{_text(100.0 * np.expm1(sd), 2)} %" if sd < 1.0 else f"a factor of {_text(np.exp(sd), 2)}"
    )


def _movement_words(ratio: float) -> str:
    if not np.isfinite(ratio):
        return "the chain does not say"
    if ratio > _LIVELY:
        return "livelier than the chain expects"
    return "calmer than the chain expects" if ratio < 1.0 / _LIVELY else "as the chain expects"


def _as_hold_out(checked: Any) -> dict[str, Any]:
    """What `model.calibrate` found, in the form of `hold_out`."""
    low, high = checked.band
    return {
        "coverage": checked.coverage,
        "inside": checked.inside,
        "total": checked.n_origins,
        "low": low,
        "high": high,
        "words": "These are totals one step ahead, each forecast from the steps before it, with "
        "the model taken at its word; all bands of this report are widened by what was missing.",
    }


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "temporalnmf": __version__}
    for package in ("numpy", "scipy", "scikit-learn", "numba"):
        found[package] = version(package)
    return found


def _checksum(*arrays: Array) -> str:
    """SHA-256 of the arrays as little-endian doubles, row by row."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return digest.hexdigest()


def _data_checksum(series: Any) -> str:
    """SHA-256 of the observed entries, the same for dense and sparse data."""
    digest = hashlib.sha256()
    for n in range(series.n_steps):
        x, weight = series.row(n)
        digest.update(np.where(weight > 0.0, x, np.nan).astype("<f8").tobytes())
    return digest.hexdigest()


def _file_checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _value(value: Any) -> str:
    """A parameter in few words: arrays and functions by what they are."""
    if isinstance(value, tuple) and any(np.ndim(part) for part in value):
        return "arrays of shape " + " and ".join(str(np.shape(part)) for part in value)
    if callable(value) and not isinstance(value, str):
        return getattr(value, "__name__", type(value).__name__)
    return _clean(repr(value), 400)


# Text and numbers


def _clean(text: Any, longest: int = _LONGEST_NAME) -> str:
    """Text from a foreign file as UTF-8 can hold it, without control characters, cut if long."""
    text = str(text).encode("utf-8", "replace").decode()
    text = "".join(c if c.isprintable() else " " for c in text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _percent(share: float) -> str:
    percent = 100.0 * share
    return f"{percent:.0f} %" if percent >= 10 or percent == 0 else f"{_text(percent, 2)} %"


def _rounded(value: Any, digits: int = 4) -> float | int | None:
    """A number with so many significant digits; None if it is not finite."""
    return None if value is None else _number(float(value), digits)


def _number(value: float, digits: int = 4) -> float | int | None:
    if not np.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _numbers(values: Any, digits: int = 4) -> list[float | int | None]:
    return [_number(value, digits) for value in np.asarray(values, dtype=float).tolist()]


def _text(value: Any, digits: int = 4) -> str:
    """A number for people: significant digits, thousands set apart; as `say` in report.js."""
    short = _rounded(value, digits)
    if short is None:
        return "–"
    if short != 0 and not 1e-4 <= abs(short) < 1e9:
        return f"{short:.{digits - 1}e}"
    places = 0 if short == 0 else max(0, digits - 1 - int(np.floor(np.log10(abs(short)))))
    text = f"{short:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
