"""Comparisons of models on held-out data: of chains, as in the paper, and of ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Argument, Option

from ..messages.arguments import check_choice
from ..runtime.files import write_csv
from . import data as tables
from .cluster import Cluster
from .console import Voice, listed, progress_bar, save_figure
from .settings import Components, season_of
from .spelling import as_advice

if TYPE_CHECKING:
    from distributed import Client
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from ..experiments import Protocol
    from ..experiments.summaries import Row
    from ..reading import TimeTable
    from ..selection import Selection

_Jobs = Annotated[int | None, Option(min=-1, help="Processes, -1 for all cores.", show_default="1")]
_Inits = Annotated[int, Option(min=1, help="Random starts per split.")]
_Out = Annotated[Path, Option(help="Folder for records and tables.")]
_Seed = Annotated[int, Option(help="The same seed gives the same numbers.")]


class Choices(NamedTuple):
    """The models of an experiment."""

    chains: Annotated[str, Option(help="'all', or names separated by commas.")] = "all"
    inference: Annotated[
        str, Option(help="'map', 'gibbs' (posterior draws, for counts), or 'map,gibbs'.")
    ] = "map"
    choose_components: Annotated[
        str | None, Option(help="Numbers of components to try on validation steps: 3,6,10.")
    ] = None
    choose_smoothing: Annotated[
        str | None, Option(help="Smoothings to try on validation steps: learn,0.3,3.")
    ] = None

    def of(self, protocol: Protocol) -> Protocol:
        """An experiment with these models."""
        kinds = [kind.strip() for kind in self.inference.split(",")]
        for kind in kinds:
            check_choice("inference", kind, ("map", "gibbs"))
        if "gibbs" in kinds:
            protocol = protocol.with_draws(modes="map" in kinds)
        what = "positive numbers"
        if text := self.choose_components:
            found = listed("--choose-components", text, int, lambda k: k > 0, what)
            protocol = protocol.choosing(n_components=tuple(found))
        if text := self.choose_smoothing:
            given = "--choose-smoothing", text, _smoothing
            tried = listed(*given, lambda s: isinstance(s, str) or s > 0.0, what)
            protocol = protocol.choosing(smoothing=tuple(tried))
        if self.chains == "all":
            return protocol
        return protocol.only([chain.strip() for chain in self.chains.split(",")])


def compare(
    voice: Voice,
    file: tables.File,
    out: _Out,
    choices: Choices,
    cluster: Cluster,
    how: tables.Reading,
    components: Components = 5,
    splits: Annotated[int, Option(min=1, help="Ways to hide steps.")] = 5,
    inits: _Inits = 5,
    origins: Annotated[
        int | None,
        Option(
            min=0,
            help="Past forecasts to score; 0: the last step only, as in the paper.",
            show_default="20, fewer in a short series; 0 with --way paper",
        ),
    ] = None,
    way: Annotated[
        str, Option(help="'ours': log scale, means, smoothing; 'paper': linear, modes, MM.")
    ] = "ours",
    season: Annotated[
        str | None,
        Option(
            help="Of all chains. 'auto': the seasons that predict held-out steps better, chosen "
            "once; 'none'; or 'day', 'week', 'year', or a number of steps, separated by commas.",
            show_default="auto; none with --way paper",
        ),
    ] = None,
    baseline: Annotated[
        str | None, Option(help="Model to compare the others with.", show_default="gap")
    ] = None,
    jobs: _Jobs = None,
    seed: _Seed = 0,
) -> None:
    """Compare chains on your own data, by errors on hidden time steps.

    Gap error: a fifth of the inner steps is hidden, no two neighbours; half of them choose each
    chain's hyper-parameters, the other half is scored. Forecast error: from each of the last 20
    steps the next one is forecast, with hyper-parameters chosen on earlier forecasts. A difference
    is reported only if it is significant, given all comparisons that are made. Data with dates are
    also compared with repeating the last cycle, such as the last week. The same command continues a
    run that was interrupted.
    """
    from ..experiments import PROTOCOLS
    from ..experiments.tables import about_the_default, legend, verdict

    voice.resumes = True
    check_choice("way", way, tuple(PROTOCOLS))
    connection = cluster.client(jobs)
    X = tables.read(file, how, voice)
    wanted: dict[str, Any] = {} if origins is None else {"n_origins": origins}
    if season is not None:
        wanted["season"] = season_of(season)
    protocol = PROTOCOLS[way](components, n_splits=splits, n_inits=inits, seed=seed, **wanted)
    table, rows = _run(choices.of(protocol), X, out, jobs, connection, voice, baseline)
    _show_table(table, voice)
    voice.say(
        "An error is the Kullback-Leibler divergence of hidden counts from what the model expected "
        f"there, summed; lower is better. {legend(table)}"
    )
    found = [verdict(table, as_advice), *about_the_default(rows, baseline, as_advice)]
    if any(found):
        voice.say(" ".join(filter(None, found)))


def reproduce(
    voice: Voice,
    dataset: Annotated[str, Argument(help="nips, lastfm or icews.")],
    out: _Out,
    choices: Choices,
    cluster: Cluster,
    data: Annotated[
        Path | None, Option(help="Data.", show_default="TEMPORALNMF_DATA, or a download")
    ] = None,
    jobs: _Jobs = None,
    way: Annotated[str, Option(help="'paper' to the letter, or 'ours'.")] = "paper",
    splits: Annotated[int, Option(min=1, help="Number of the paper's five splits.")] = 5,
    inits: _Inits = 5,
    components: Annotated[
        int | None, Option(min=1, help="Number of components.", show_default="the paper's")
    ] = None,
) -> None:
    """Repeat a table of the paper, with its seed, splits, starts, grids and stopping rule.

    KLE-S is the error of hidden steps inside the series, KLE-F that of the last step.
    """
    from .. import datasets
    from ..experiments import PROTOCOLS, paper_protocol
    from ..experiments.published import N_COMPONENTS, SHAPES, TABLES
    from ..experiments.tables import legend

    voice.resumes = True
    check_choice("dataset", dataset, tuple(TABLES))
    check_choice("way", way, tuple(PROTOCOLS))
    connection = cluster.client(jobs)
    more = {"allow_stand_in": True} if dataset == "icews" else {}
    found = getattr(datasets, f"fetch_{dataset}")(data=data, **more)
    X = found.data
    voice.say(f"{dataset}: {X.shape[0]} steps x {X.shape[1]} features, from {found.source}")
    same = X.T.shape == SHAPES[dataset]
    if not same:
        size = " x ".join(map(str, SHAPES[dataset]))
        about = f"the paper's {dataset} is {size}. Its published numbers are not shown beside ours."
        voice.say(f"This is a stand-in: {about}")
    n_components = components or N_COMPONENTS[dataset]
    protocol = choices.of(
        PROTOCOLS[way](n_components, n_splits=splits, n_inits=inits, n_origins=0, season=None)
    )
    table, _ = _run(protocol, X, out, jobs, connection, voice)
    _show_table(table, voice)
    voice.say(legend(table))
    if same:
        _show_published(table, dataset, out, voice)
        if changed := protocol.differs(paper_protocol(N_COMPONENTS[dataset])):
            voice.say(f"Not the paper's setting, so ratios mean little: {', '.join(changed)}.")


def select_rank(
    voice: Voice,
    file: tables.File,
    cluster: Cluster,
    how: tables.Reading,
    out: _Out = Path("results/rank"),
    largest: Annotated[int, Option(min=1, help="Try 1 to this many components.")] = 10,
    splits: Annotated[int, Option(min=1, help="Ways to hide entries.")] = 10,
    inits: _Inits = 1,
    rule: Annotated[str, Option(help="'lowest' error, as in the paper, or 'one_se'.")] = "lowest",
    way: Annotated[
        str, Option(help="'paper': no smoothing, MM; 'ours': smoothing, accelerated.")
    ] = "paper",
    jobs: _Jobs = None,
    seed: _Seed = 0,
) -> None:
    """Choose the number of components by plain NMF on randomly hidden entries, as in the paper."""
    from ..selection import HiddenEntries, select

    check_choice("way", way, ("paper", "ours"))
    connection = cluster.client(jobs)
    X = tables.read(file, how, voice)
    paper: dict[str, float | str] = {"smoothing": 0.0, "solver": "mm"}
    with connection as client, progress_bar("fits") as progress:
        found = select(
            X, chains="none", n_components=range(1, largest + 1), n_init=inits, rule=rule,
            splitter=HiddenEntries(splits, random_state=seed), n_jobs=jobs, client=client,
            random_state=seed, progress=progress, **(paper if way == "paper" else {}),
        )  # fmt: skip
    _show_ranks(found, voice)
    if found.best.n_components == largest > 1:
        voice.say(f"This is the largest number that was tried: increase --largest {largest}.")
    _write_ranks(found, out, voice)


def _show_ranks(found: Selection, voice: Voice) -> None:
    rows = {
        c.n_components: (str(c.n_components), f"{c.mean:.5g}", f"{c.standard_error:.2g}")
        for c in found.candidates
    }
    voice.say("\nKullback-Leibler error per hidden entry, plain NMF")
    headings = ("components", "error", "standard error")
    voice.table(headings, list(rows.values()), bold=[rows[found.best.n_components]])
    voice.say(found.answer)


def _write_ranks(found: Selection, out: Path, voice: Voice) -> None:
    records = [
        {"split": i, "model": c.chain, "n_components": c.n_components, "error": float(error)}
        for c in found.candidates
        for i, error in enumerate(c.errors)
    ]
    columns = {"chain": "model", "error": "error_mean", "standard_error": "error_se"}
    table = [
        {columns.get(name, name): value for name, value in row.items() if name != "params"}
        for row in found.rows()
    ]
    voice.wrote(write_csv(out / "records.csv", records))
    voice.wrote(write_csv(out / "table.csv", table))

    def draw() -> Figure:
        from ..plotting import Figure

        figure = Figure(figsize=(6.0, 3.6), layout="constrained")
        found.plot(figure.subplots())
        return figure

    _save_picture(draw, out / "rank.png", voice)


def _smoothing(word: str) -> float | str:
    return word if word == "learn" else float(word)


def _run(
    protocol: Protocol,
    X: TimeTable | ArrayLike,
    out: Path,
    jobs: int | None,
    connection: AbstractContextManager[Client | None],
    voice: Voice,
    baseline: str | None = None,
) -> tuple[list[Row], list[Row]]:
    """Run an experiment and write its files; returns the table and the chosen fits behind it."""
    from ..experiments import chosen, run, write_tables
    from ..experiments.tables import plot_differences, unconverged

    n_jobs = 1 if jobs is None else jobs
    with connection as client, progress_bar("fits") as progress:
        records = run(protocol, X, out, n_jobs=n_jobs, client=client, progress=progress)
    table, paths = write_tables(records, out, baseline)
    for path in paths:
        voice.wrote(path)
    rows = chosen(records)
    if text := unconverged(rows):
        voice.say(text)
    if len(table) > 1:
        _save_picture(lambda: plot_differences(rows, baseline), out / "differences.png", voice)
    return table, rows


def _save_picture(draw: Callable[[], Figure], path: Path, voice: Voice) -> None:
    """Write a figure, or print that matplotlib is missing."""
    try:
        save_figure(draw(), path, voice)
    except ImportError as error:
        voice.say(f"No {path.name}: {error}")


def _show_table(table: Sequence[Row], voice: Voice) -> None:
    from ..experiments.tables import difference, is_best, mean_and_deviation, mean_rank, titles

    headings = ("model", "error", f"against {table[0]['baseline']}", "mean rank")
    for metric, title in titles(table).items():
        shown = []
        for row in table:
            cells = row["model"], mean_and_deviation(row, metric), difference(row, metric, table)
            shown.append((*cells, mean_rank(row, metric)))
        best = [shown[i] for i, row in enumerate(table) if is_best(row, metric, table)]
        voice.say(f"\n{title[:1].upper()}{title[1:]}")
        voice.table(headings, shown, left=("model",), bold=best)


def _show_published(table: Sequence[Row], dataset: str, out: Path, voice: Voice) -> None:
    from ..experiments.published import TABLES
    from ..experiments.tables import METRICS, beside_published

    found = beside_published(table, TABLES[dataset])
    if not found:
        return  # the paper has no draws
    kinds = {"ours": ",.0f", "published": ",.0f", "ratio": ".3f"}
    formats = {f"{m}_{kind}": form for m in METRICS for kind, form in kinds.items()}
    rows = [[r["model"], *(format(r[name], formats[name]) for name in formats)] for r in found]
    voice.say("\nBeside the published means")
    headings = ("model", "KLE-S", "published", "ratio", "KLE-F", "published", "ratio")
    voice.table(headings, rows, left=("model",))
    voice.wrote(write_csv(out / "published.csv", found))
