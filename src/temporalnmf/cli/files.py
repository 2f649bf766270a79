"""Model files, as commands see them."""

from __future__ import annotations

import warnings
import zipfile
from pathlib import Path
from typing import Annotated, Any

import typer

Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file, written by temporalnmf fit.")
]


def is_model(path: Path) -> bool:
    """Whether a file is, or was meant as, a model."""
    from ..runtime.archives import Archive

    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    try:
        with Archive(path) as file:
            return "header.json" in file.members
    except ValueError:  # damaged
        return False


def load_model(path: Path, *, refits: bool = False) -> Any:
    """The model of a file, on all cores, or an error that says where models come from.

    Capped parameters matter to commands that fit again, and only these warn of them.
    """
    from ..estimator import load
    from ..persistence.models import CappedWarning

    if path.is_file() and not is_model(path):
        raise ValueError(
            f"{path} is not a model, or a damaged one. A table becomes a model with: temporalnmf "
            f"fit {path} --out model.npz"
        )
    with warnings.catch_warnings():
        if not refits:
            warnings.simplefilter("ignore", CappedWarning)
        return load(path).set_params(n_jobs=-1)


def header_of(path: Path) -> dict[str, Any]:
    """What the file says of itself: format, schema, versions, where it came from."""
    from ..runtime.archives import Archive

    with Archive(path) as file:
        return dict(file.json("header.json"))
