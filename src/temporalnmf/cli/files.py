"""Model files."""

from __future__ import annotations

import warnings
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

if TYPE_CHECKING:
    from ..estimator import TemporalNMF

Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file, written by temporalnmf fit.")
]


class Header(TypedDict):
    """The header of a model file."""

    format: str
    schema: int
    versions: dict[str, str]
    parameters: dict[str, object]
    provenance: dict[str, str] | None


def is_model(path: Path) -> bool:
    """Whether a file is an archive with the header of a model."""
    return archive_has(path, "header.json")


def archive_has(path: Path, member: str) -> bool:
    """Whether a file is an archive with a member of this name."""
    from ..runtime.archives import Archive

    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    try:
        with Archive(path) as file:
            return member in file.members
    except ValueError:  # damaged
        return False


def load_model(path: Path, *, refits: bool = False) -> TemporalNMF:
    """The model of a file, set to use all cores.

    Only commands that fit again warn of parameters that loading lowers.
    """
    from ..estimator import load
    from ..persistence.models import CappedWarning

    if path.is_file() and not is_model(path):
        remedy = f"Make a model of a table with: temporalnmf fit {path} --out model.npz"
        raise ValueError(f"{path} is not a model, or is damaged. {remedy}")
    with warnings.catch_warnings():
        if not refits:
            warnings.simplefilter("ignore", CappedWarning)
        return load(path).set_params(n_jobs=-1)


def header_of(path: Path) -> Header:
    """The header of a model file."""
    from ..runtime.archives import Archive

    with Archive(path) as file:
        header: Header = file.json("header.json")
    return header
