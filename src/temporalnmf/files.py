"""Files are written whole or not at all."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A name to write to, which becomes `path` when the block ends well and is gone if not.

    Folders that are missing are made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial{path.suffix}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_csv(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """Rows with the same keys as a table with a header."""
    rows = list(rows)
    with (
        written_whole(path) as partial,
        partial.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def refuse_overwriting(path: Path, overwrite: bool) -> None:
    """A result that is there stays there, unless the user says otherwise."""
    if path.exists() and not overwrite:
        raise FileExistsError(
            f"{path} exists already. Choose another name, or replace it with overwrite=True "
            f"(--force)."
        )
