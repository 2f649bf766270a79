"""Options for a Dask cluster."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from distributed import Client

_PANEL = "On a Dask cluster"


class Cluster(NamedTuple):
    """Options of commands that can run on a cluster."""

    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Scheduler of a cluster, as tcp://192.168.0.7:8786.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="'local' starts a cluster on this machine, for this command only.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Worker processes of --dask local.",
            show_default="one per core",
            rich_help_panel=_PANEL,
        ),
    ] = None
    memory_limit: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Memory of each worker of --dask local, as 2GB.",
            show_default="its share of the machine",
            rich_help_panel=_PANEL,
        ),
    ] = None

    @property
    def option(self) -> str | None:
        """The option that asks for a cluster, or None."""
        return "--scheduler" if self.scheduler else "--dask" if self.dask else None

    def client(self, jobs: int | None) -> AbstractContextManager[Client | None]:
        """A client of the cluster, or None; `jobs` are processes without a cluster."""
        from ..cluster.clients import serving

        cluster = serving(self.scheduler, self.dask, self.workers, self.memory_limit)
        if jobs is not None and self.option:
            raise ValueError(
                f"--jobs {jobs} is for processes without a cluster: leave out --jobs or "
                f"{self.option}."
            )
        return cluster
