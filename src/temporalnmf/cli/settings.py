"""The settings of a fit."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from .. import registry
from ..messages.errors import ArgumentError

if TYPE_CHECKING:
    from ..estimator import TemporalNMF

Components = Annotated[int, typer.Option(min=1, help="Number of components.")]
_option = typer.Option
_of_draws = partial(_option, rich_help_panel="Draws from the posterior, --solver gibbs")


class Settings(NamedTuple):
    """The model and how it is fitted."""

    components: Components = 5
    chain: Annotated[str, _option(help=f"How activations move: {', '.join(registry.CHAINS)}.")] = (
        "rate"
    )
    likelihood: Annotated[
        str,
        _option(
            help="'auto': 'negative_binomial' for counts that clump, else 'poisson'. Or "
            "'poisson', 'negative_binomial' or 'negative_binomial_2' for counts, "
            "'exponential' or 'gamma' for positive values, 'tweedie' for amounts with zeros, "
            "'gaussian' for values with a constant absolute error."
        ),
    ] = "auto"
    solver: Annotated[
        str, _option(help="'accelerated' or 'mm': most probable model; 'gibbs': posterior draws.")
    ] = "accelerated"
    learn: Annotated[
        str | None,
        _option(
            metavar="NAMES",
            help="Learn these from the data: hyper-parameters of the chain, as alpha,beta; of "
            "counts smoothing, too; or 'all'.",
        ),
    ] = None
    season: Annotated[
        str,
        _option(
            help="'auto': the seasons that predict held-out steps better; 'none'; or 'day', "
            "'week', 'year', or a number of steps, several separated by commas."
        ),
    ] = "auto"
    trend: Annotated[
        str,
        _option(
            help="Growth that continues: 'none'; 'auto', if it makes past forecasts better; or its "
            "damping per step, 0.5 to 1."
        ),
    ] = "none"
    holidays: Annotated[
        str | None,
        _option(metavar="COUNTRY", help="Its public holidays: US, DE-BY; several with commas."),
    ] = None
    covariates: Annotated[
        Path | None,
        _option(help="CSV or Parquet of known influences: a row per time, a column for each."),
    ] = None
    intervals: Annotated[
        Literal["checked", "model"],
        _option(help="'checked': compared with past forecasts; 'model': as if it were correct."),
    ] = "checked"
    starts: Annotated[
        int, _option(min=1, help="Random starts; two or more show how stable components are.")
    ] = 3
    seed: Annotated[int, _option(min=0, help="The same seed gives the same model.")] = 0
    max_iter: Annotated[int, _option(min=1, help="Iterations per start, at most.")] = 1000
    tol: Annotated[
        float, _option(min=0.0, help="Stop at this relative decrease per iteration.")
    ] = 1e-6
    jobs: Annotated[
        int | None, _option(min=-1, help="Threads, -1 for all cores.", show_default="all cores")
    ] = None
    draws: Annotated[int, _of_draws(min=1, help="Draws per run.")] = 500
    tune: Annotated[int, _of_draws(min=0, help="Sweeps per run before the first draw.")] = 500
    runs: Annotated[
        int, _of_draws(min=1, help="Independent runs; two or more show whether they agree.")
    ] = 4
    thin: Annotated[
        int | None,
        _of_draws(min=1, help="Keep one draw in this many.", show_default="as fits into 256 MB"),
    ] = None
    checkpoint: Annotated[
        Path | None,
        _option(
            help="File for the state of the fit: if it is interrupted, the same command continues. "
            "A folder if the data are not in memory, except with --solver gibbs."
        ),
    ] = None
    checkpoint_every: Annotated[
        float, _option(min=0.0, metavar="SECONDS", help="Time between two checkpoints.")
    ] = 30.0

    @property
    def drawing(self) -> bool:
        return self.solver in registry.SAMPLERS

    def estimator(self) -> TemporalNMF:
        """An estimator with checked parameters."""
        from ..estimator import TemporalNMF
        from ..solvers.options import Checkpoint, Gibbs

        drawing, path = self.drawing, self.checkpoint
        model = TemporalNMF(
            self.components, chain=self.chain, likelihood=self.likelihood,
            intervals=self.intervals, season=season_of(self.season),
            trend=_trend(self.trend), holidays=self.holidays and self.holidays.split(","),
            solver=Gibbs(self.draws, self.tune, self.runs, self.thin) if drawing else self.solver,
            n_init=1 if drawing else self.starts, max_iter=self.max_iter, tol=self.tol,
            checkpoint=path and Checkpoint(path, self.checkpoint_every),
            n_jobs=-1 if self.jobs is None else self.jobs or 1, random_state=self.seed,
        )  # fmt: skip
        model._config().check()
        if self.learn is not None:
            _learn(self.learn, model)
        return model


def season_of(given: str) -> Any:
    """The parameter `season` from the option."""
    if given in ("auto", "none"):
        return None if given == "none" else given
    words = [word.strip() for word in given.split(",")]
    found = [int(word) if word.isdigit() else word for word in words]
    return found[0] if len(found) == 1 else found


def _trend(given: str) -> Any:
    """The parameter `trend` from the option."""
    if given in ("auto", "none"):
        return None if given == "none" else given
    with suppress(ValueError):
        if 0.5 <= (damping := float(given)) <= 1.0:
            return damping
    problem = ": expected 'none', 'auto' or a number from 0.5 to 1."
    raise ArgumentError("trend", given, problem)


def _learn(learn: str, model: TemporalNMF) -> None:
    """Set the parameters that --learn names."""
    name, config = model.chain, model._config()
    chain = registry.create(registry.CHAINS, name, "chain")
    of_counts = config.likelihood.has_draws
    own = [parameter for parameter in chain.get_params() if parameter != "marginal"]
    known = [*own, "smoothing"] if of_counts else own
    together = [parameter for parameter in known if parameter not in chain._exclusive]
    names = together if learn == "all" else [word.strip() for word in learn.split(",")]
    unknown = [word for word in names if word not in known]
    if unknown or not names:
        wrong = ""
        if len(names) > 1:
            wrong = f"{unknown[0]} is not known; " if unknown[0] else "one name is empty; "
        more = (
            "" if of_counts else "; smoothing with --likelihood poisson or negative_binomial only"
        )
        choice = f"with --chain {name} and --likelihood {model.likelihood} it can be"
        can_be = ", ".join(known) or "nothing"
        raise ValueError(f"--learn {learn}: {wrong}{choice} {can_be}{more}.")
    for word in names:
        other = chain._exclusive.get(word)
        if other in names:
            problem = f"only the ratio of {other} and {word} matters. Learn one of them."
            raise ValueError(f"--learn {learn}: {problem}")
    if "smoothing" in names:
        model.smoothing = "learn"
    if words := {word: "learn" for word in names if word != "smoothing"}:
        model.chain = chain.set_params(**words)
