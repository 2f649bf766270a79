"""Options for a Dask cluster."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from distributed import Client

_option = partial(typer.Option, rich_help_panel="On a Dask cluster")


class Cluster(NamedTuple):
    """Options of commands that can run on a cluster."""

    scheduler: Annotated[
        str | None, _option(metavar="ADDRESS", help="Scheduler, as tcp://192.168.0.7:8786.")
    ] = None
    dask: Annotated[
        str | None, _option(metavar="WHERE", help="'local': start a cluster on this machine.")
    ] = None
    workers: Annotated[
        int | None, _option(min=1, help="Workers of --dask local.", show_default="one per core")
    ] = None
    memory_limit: Annotated[
        str | None, _option(metavar="SIZE", help="Memory of each worker of --dask local, as 2GB.")
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
            problem = f"is for processes without a cluster: leave out --jobs or {self.option}."
            raise ValueError(f"--jobs {jobs} {problem}")
        return cluster
