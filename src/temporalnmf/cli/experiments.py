"""Does modelling time help, and which chain? The paper's comparison, on any data."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

import typer

from . import data as tables
from .cluster import Dask, MemoryLimit, Scheduler, Workers, chosen_cluster
from .console import clean_errors, progress_bar, save_figure

_Jobs = Annotated[
    int | None,
    typer.Option(min=-1, help="Worker processes, -1 for all cores.", show_default="1"),
]
_Chains = Annotated[str, typer.Option(help="'all', or names with commas between.")]
_Seed = Annotated[int, typer.Option(help="The same seed gives the same numbers.")]

_Inference = Annotated[
    str, typer.Option(help="'map', 'gibbs' (posterior draws, for counts), or 'map,gibbs'.")
]
_ChooseComponents = Annotated[
    str | None,
    typer.Option(help="Numbers of components to choose from on validation steps, as 3,6,10."),
]
_ChooseSmoothing = Annotated[
    str | None, typer.Option(help="Smoothings to choose from likewise, as learn,0.3,3.")
]

_WHAT_KLE_IS = (
    "An error is how far hidden counts are from what the model expected there (Kullback-Leibler), "
    "summed; lower is better."
)


def compare(
    file: tables.File,
    out: Annotated[Path, typer.Option(help="Folder for records and tables.")],
    components: Annotated[int, typer.Option(min=1, help="Number of components.")] = 5,
    splits: Annotated[int, typer.Option(min=1, help="Ways to hide steps.")] = 5,
    inits: Annotated[int, typer.Option(min=1, help="Random starts per split.")] = 5,
    origins: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Forecasts of the past to score; 0: the last step only, as in the paper.",
            show_default="20, fewer in a short series; 0 with --way paper",
        ),
    ] = None,
    chains: _Chains = "all",
    way: Annotated[
        str,
        typer.Option(help="'ours': log scale, means, smoothing; 'paper': linear scale, modes, MM."),
    ] = "ours",
    baseline: Annotated[
        str | None, typer.Option(help="Model that differences are taken from; gap by default.")
    ] = None,
    inference: _Inference = "map",
    choose_components: _ChooseComponents = None,
    choose_smoothing: _ChooseSmoothing = None,
    jobs: _Jobs = None,
    scheduler: Scheduler = None,
    dask: Dask = None,
    workers: Workers = None,
    memory_limit: MemoryLimit = None,
    seed: _Seed = 0,
    time: tables.Time = None,
    feature: tables.Feature = None,
    value: tables.Value = None,
    exposure: tables.Exposure = None,
    freq: tables.Freq = None,
    transpose: tables.Transpose = False,
    drop_partial: tables.DropPartial = False,
) -> None:
    """Compare chains on your own data, by errors on hidden time steps.

    The gap error: a fifth of the inner steps is hidden, no two neighbours; half of them choose each
    chain's hyper-parameters, the other half is scored. The forecast error: from each of the last
    20 steps the next one is forecast, with hyper-parameters chosen on earlier forecasts. A
    difference is named only if it is more than chance, given all comparisons that are made. A run
    that was stopped goes on where it was.
    """
    with clean_errors(resumes=True) as voice:
        from ..experiments import PROTOCOLS
        from ..experiments.tables import about_the_default, legend, verdict
        from ..messages.arguments import check_choice

        check_choice("--way", way, tuple(PROTOCOLS))
        cluster = chosen_cluster(jobs, scheduler, dask, workers, memory_limit)
        how = tables.Reading(time, feature, value, exposure, freq, transpose, drop_partial)
        X = tables.read(file, how, voice)
        settings = {"n_splits": splits, "n_inits": inits, "seed": seed}
        settings |= {} if origins is None else {"n_origins": origins}
        protocol = PROTOCOLS[way](components, **settings)
        protocol = _only(
            _extended(protocol, inference, choose_components, choose_smoothing), chains
        )
        table, rows = _run(protocol, X, out, jobs, cluster, baseline)
        _print_table(table)
        typer.echo(f"{_WHAT_KLE_IS} {legend(table)}")
        if words := [*filter(None, [verdict(table)]), *about_the_default(rows, baseline)]:
            typer.echo(" ".join(words))


def reproduce(
    dataset: Annotated[str, typer.Argument(help="nips, lastfm or icews.")],
    out: Annotated[Path, typer.Option(help="Folder for records and tables.")],
    data: Annotated[
        Path | None,
        typer.Option(help="File or folder with the data; else TEMPORALNMF_DATA, or a download."),
    ] = None,
    jobs: _Jobs = None,
    scheduler: Scheduler = None,
    dask: Dask = None,
    workers: Workers = None,
    memory_limit: MemoryLimit = None,
    way: Annotated[str, typer.Option(help="'paper' to the letter, or 'ours'.")] = "paper",
    splits: Annotated[int, typer.Option(min=1, help="Of the paper's five.")] = 5,
    inits: Annotated[int, typer.Option(min=1, help="The paper has five.")] = 5,
    components: Annotated[
        int | None, typer.Option(min=1, help="Number of components; the paper's by default.")
    ] = None,
    chains: _Chains = "all",
    inference: _Inference = "map",
    choose_components: _ChooseComponents = None,
    choose_smoothing: _ChooseSmoothing = None,
) -> None:
    """Repeat a table of the paper, with its seed, splits, starts, grids and stopping rule.

    KLE-S is the error of hidden steps inside the series, KLE-F that of the last step.
    """
    with clean_errors(resumes=True):
        from .. import datasets
        from ..experiments import PROTOCOLS, paper_protocol
        from ..experiments.published import N_COMPONENTS, SHAPES, TABLES
        from ..experiments.tables import legend
        from ..messages.arguments import check_choice

        check_choice("dataset", dataset, tuple(TABLES))
        check_choice("--way", way, tuple(PROTOCOLS))
        cluster = chosen_cluster(jobs, scheduler, dask, workers, memory_limit)
        more = {"allow_stand_in": True} if dataset == "icews" else {}
        found = getattr(datasets, f"fetch_{dataset}")(data=data, **more)
        X = found.data
        typer.echo(f"{dataset}: {X.shape[0]} steps x {X.shape[1]} features, from {found.source}")
        same = X.T.shape == SHAPES[dataset]
        if not same:
            typer.echo(
                f"This is a stand-in: the paper's {dataset} is {SHAPES[dataset][0]} x "
                f"{SHAPES[dataset][1]}. Its published numbers are not shown beside ours."
            )
        protocol = PROTOCOLS[way](
            components or N_COMPONENTS[dataset], n_splits=splits, n_inits=inits, n_origins=0
        )
        protocol = _only(
            _extended(protocol, inference, choose_components, choose_smoothing), chains
        )
        table, _ = _run(protocol, X, out, jobs, cluster, None)
        _print_table(table)
        typer.echo(legend(table))
        if same:
            _print_published(table, dataset, out)
            changed = protocol.differs(paper_protocol(N_COMPONENTS[dataset]))
            if changed:
                typer.echo(f"Not the paper's setting, so ratios mean little: {', '.join(changed)}.")


def select_rank(
    file: tables.File,
    out: Annotated[Path, typer.Option(help="Folder for records and tables.")] = Path(
        "results/rank"
    ),
    largest: Annotated[int, typer.Option(min=1, help="Try 1 to this many components.")] = 10,
    splits: Annotated[int, typer.Option(min=1, help="Ways to hide entries.")] = 10,
    inits: Annotated[int, typer.Option(min=1, help="Random starts per split.")] = 1,
    rule: Annotated[
        str, typer.Option(help="'lowest' error, as in the paper, or 'one_se'.")
    ] = "lowest",
    way: Annotated[
        str, typer.Option(help="'paper': no smoothing, MM; 'ours': smoothing, accelerated.")
    ] = "paper",
    jobs: _Jobs = None,
    scheduler: Scheduler = None,
    dask: Dask = None,
    workers: Workers = None,
    memory_limit: MemoryLimit = None,
    seed: _Seed = 0,
    time: tables.Time = None,
    feature: tables.Feature = None,
    value: tables.Value = None,
    exposure: tables.Exposure = None,
    freq: tables.Freq = None,
    transpose: tables.Transpose = False,
    drop_partial: tables.DropPartial = False,
) -> None:
    """Choose the number of components by plain NMF on randomly hidden entries, as in the paper."""
    with clean_errors() as voice:
        from ..messages.arguments import check_choice
        from ..runtime.files import write_csv
        from ..selection import HiddenEntries, select

        check_choice("--way", way, ("paper", "ours"))
        cluster = chosen_cluster(jobs, scheduler, dask, workers, memory_limit)
        plain: dict[str, Any] = {"smoothing": 0.0, "solver": "mm"} if way == "paper" else {}
        how = tables.Reading(time, feature, value, exposure, freq, transpose, drop_partial)
        X = tables.read(file, how, voice)
        with cluster as client, progress_bar("fits") as progress:
            found = select(
                X, chains="none", n_components=range(1, largest + 1), n_init=inits, rule=rule,
                splitter=HiddenEntries(splits, random_state=seed), n_jobs=jobs, client=client,
                random_state=seed, progress=progress, **plain,
            )  # fmt: skip
        table = [
            {
                "model": c.chain, "n_components": c.n_components, "error_mean": c.mean,
                "error_se": c.standard_error, "chosen": c is found.best,
            }
            for c in found.candidates
        ]  # fmt: skip
        records = [
            {"split": i, "model": c.chain, "n_components": c.n_components, "error": float(error)}
            for c in found.candidates
            for i, error in enumerate(c.errors)
        ]
        _print_ranks(table)
        typer.echo(found.answer)
        if found.best.n_components == largest > 1:
            typer.echo(
                f"This is the largest number that was tried: try more than --largest {largest}."
            )
        typer.echo(f"written: {write_csv(out / 'records.csv', records)}")
        typer.echo(f"written: {write_csv(out / 'table.csv', table)}")
        _save_picture(lambda: found.plot(_axes()).figure, out / "rank.png")


def _extended(protocol: Any, inference: str, components: str | None, smoothing: str | None) -> Any:
    """The experiment with posterior draws, and with more to choose from."""
    from ..messages.arguments import check_choice

    ways = [way.strip() for way in inference.split(",")]
    for way in ways:
        check_choice("--inference", way, ("map", "gibbs"))
    if "gibbs" in ways:
        protocol = protocol.with_draws(modes="map" in ways)
    return protocol.choosing(
        tuple(_numbers("--choose-components", components, int)),
        tuple(_numbers("--choose-smoothing", smoothing, _smoothing)),
    )


def _smoothing(word: str) -> float | str:
    return word if word == "learn" else float(word)


def _numbers(option: str, words: str | None, kind: Any) -> list[Any]:
    found = []
    for word in (words or "").split(",") if words else []:
        try:
            value = kind(word.strip())
        except ValueError:
            value = 0
        if not isinstance(value, str) and not value > 0:
            raise ValueError(f"{option} {words}: expected positive numbers with commas between.")
        found.append(value)
    return found


def _only(protocol: Any, chains: str) -> Any:
    return protocol if chains == "all" else protocol.only([c.strip() for c in chains.split(",")])


def _run(
    protocol: Any,
    X: Any,
    out: Path,
    jobs: int | None,
    cluster: AbstractContextManager[Any],
    baseline: str | None,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Do the experiment, write its files; returns the table and the chosen fits behind it."""
    from ..experiments import chosen, run, write_tables
    from ..experiments.tables import plot_differences, unconverged

    n_jobs = 1 if jobs is None else jobs
    with cluster as client, progress_bar("fits") as progress:
        records = run(protocol, X, out, n_jobs=n_jobs, client=client, progress=progress)
    table, paths = write_tables(records, out, baseline)
    for path in paths:
        typer.echo(f"written: {path}")
    rows = chosen(records)
    if words := unconverged(rows):
        typer.echo(words)
    if len(table) > 1:
        picture = out / "differences.png"
        _save_picture(lambda: plot_differences(rows, baseline), picture)
    return table, rows


def _save_picture(draw: Any, path: Path) -> None:
    """A picture is an extra: without matplotlib the rest of the work stands, and this is said."""
    try:
        figure = draw()
    except ImportError as error:
        typer.echo(f"No {path.name}: {error}")
        return
    save_figure(figure, path)


def _axes() -> Any:
    from ..plotting import Figure

    return Figure(figsize=(6.0, 3.6), layout="constrained").subplots()


def _print_table(table: Sequence[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    from ..experiments.tables import difference, is_best, mean_and_deviation, mean_rank, titles

    baseline = table[0]["baseline"]
    for metric, title in titles(table).items():
        shown = Table(title=title[:1].upper() + title[1:])
        shown.add_column("model", no_wrap=True)
        for heading in ("error", f"against {baseline}", "mean rank"):
            shown.add_column(heading, justify="right", no_wrap=True)
        for row in table:
            shown.add_row(
                row["model"],
                mean_and_deviation(row, metric),
                difference(row, metric, table),
                mean_rank(row, metric),
                style="bold" if is_best(row, metric, table) else None,
            )
        Console().print(shown)


def _print_published(table: Sequence[dict[str, Any]], dataset: str, out: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from ..experiments.published import TABLES
    from ..experiments.tables import METRICS, beside_published
    from ..runtime.files import write_csv

    rows = beside_published(table, TABLES[dataset])
    if not rows:
        return  # draws have nothing to stand beside
    shown = Table(title="Beside the published means")
    shown.add_column("model")
    for heading in ("KLE-S", "published", "ratio", "KLE-F", "published", "ratio"):
        shown.add_column(heading, justify="right")
    for row in rows:
        cells = [row["model"]]
        for m in METRICS:
            cells += [f"{row[f'{m}_{what}']:,.0f}" for what in ("ours", "published")]
            cells.append(f"{row[f'{m}_ratio']:.3f}")
        shown.add_row(*cells)
    Console().print(shown)
    typer.echo(f"written: {write_csv(out / 'published.csv', rows)}")


def _print_ranks(table: Sequence[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    shown = Table(title="Kullback-Leibler error per hidden entry, plain NMF")
    for heading in ("components", "error", "standard error"):
        shown.add_column(heading, justify="right")
    for row in table:
        shown.add_row(
            str(row["n_components"]), f"{row['error_mean']:.5g}", f"{row['error_se']:.2g}",
            style="bold" if row["chosen"] else None,
        )  # fmt: skip
    Console().print(shown)
