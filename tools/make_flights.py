"""Make the embedded dataset of departures per airport and day.

Usage::

    python tools/make_flights.py [folder] [--output FILE]

The folder, by default TEMPORALNMF_DATA, has ``flights2001_origin_day.npz`` (airports × days, a
sparse matrix) with its labels and times beside it. Or give the table of all flights from which
the matrix was counted: ``flights-3m.parquet`` of the npm package ``vega-datasets`` 3.2.1.
"""

import argparse
import os
from pathlib import Path

import numpy as np
from scipy import sparse

NAME = "flights2001_origin_day"
OUTPUT = Path(__file__).parents[1] / "src" / "temporalnmf" / "datasets" / "data" / "flights.npz"
# The last day of the table of flights has those of one minute only.
LAST = np.datetime64("2001-06-30")


def from_matrix(folder: Path) -> dict[str, np.ndarray]:
    """The counts in a folder of prepared data."""
    counts = sparse.load_npz(folder / f"{NAME}.npz").toarray().T
    airports, days = (
        (folder / f"{NAME}_{what}.txt").read_text(encoding="utf-8").split()
        for what in ("labels", "times")
    )
    return checked(counts, np.array(airports), np.array(days, dtype="datetime64[D]"))


def from_flights(path: Path) -> dict[str, np.ndarray]:
    """Flights counted by their origin and day of departure."""
    import pandas as pd

    flights = pd.read_parquet(path, columns=["date", "origin"])
    table = pd.crosstab(flights["date"].to_numpy().astype("datetime64[D]"), flights["origin"])
    days = table.index.to_numpy().astype("datetime64[D]")
    kept = days <= LAST
    airports = table.columns.to_numpy().astype(str)
    return checked(table.to_numpy()[kept], airports, days[kept])


def checked(counts: np.ndarray, airports: np.ndarray, days: np.ndarray) -> dict[str, np.ndarray]:
    """Arrays of the file, in the smallest type of whole numbers."""
    whole = counts.astype(np.min_scalar_type(int(counts.max())))
    if counts.shape != (len(days), len(airports)) or not np.array_equal(whole, counts):
        raise ValueError(
            "the source is not a matrix of counts with a label for each row and column"
        )
    if np.any(np.diff(days).astype(int) != 1) or np.any(airports[1:] <= airports[:-1]):
        raise ValueError("days are not consecutive, or airports are not in alphabetical order")
    # Days that follow each other in the file compress better.
    return {"counts": np.asfortranarray(whole), "airports": airports, "days": days}


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the dataset of departures per airport.")
    known = os.environ.get("TEMPORALNMF_DATA")
    parser.add_argument("source", type=Path, nargs="?", default=known and Path(known))
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    if arguments.source is None:
        parser.error("give the folder of the data, or set TEMPORALNMF_DATA to it")

    is_table = arguments.source.suffix == ".parquet"
    arrays = from_flights(arguments.source) if is_table else from_matrix(arguments.source)
    # NumPy gives every entry of the archive the same fixed date, so equal arrays make equal files.
    np.savez_compressed(arguments.output, **arrays)
    n_days, n_airports = arrays["counts"].shape
    size = arguments.output.stat().st_size
    print(f"{arguments.output}: {n_days} days, {n_airports} airports, {size} bytes")


if __name__ == "__main__":
    main()
