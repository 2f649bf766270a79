"""Options for a Dask cluster, which commands share."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from distributed import Client

_PANEL = "On a Dask cluster"

Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Scheduler of a cluster, as tcp://192.168.0.7:8786.",
        rich_help_panel=_PANEL,
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        metavar="WHERE",
        help="'local' starts a cluster on this machine, for this command only.",
        rich_help_panel=_PANEL,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Worker processes of --dask local.",
        show_default="one per core",
        rich_help_panel=_PANEL,
    ),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Of each worker of --dask local, as 2GB.",
        show_default="its share of the machine",
        rich_help_panel=_PANEL,
    ),
]


def chosen_cluster(
    jobs: int | None,
    scheduler: str | None,
    dask: str | None,
    workers: int | None,
    memory_limit: str | None,
) -> AbstractContextManager[Client | None]:
    """`temporalnmf.cluster.clients.serving`, for commands that have --jobs as well."""
    from ..cluster.clients import serving

    cluster = serving(scheduler, dask, workers, memory_limit)
    if jobs is not None and (scheduler or dask):
        other = "--scheduler" if scheduler else "--dask"
        raise ValueError(f"--jobs {jobs} is for processes without a cluster: drop it, or {other}.")
    return cluster
