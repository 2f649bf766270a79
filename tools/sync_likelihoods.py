"""Put what likelihoods and chains can do into docs/likelihoods.md, by their classes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from temporalnmf import registry
from temporalnmf.chains.base import Chain
from temporalnmf.likelihoods import Likelihood
from temporalnmf.likelihoods.parametric import OneParameter

PAGE = Path(__file__).parents[1] / "docs" / "likelihoods.md"
BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)
YES, NO = "yes", "–"


def _always(law: object) -> bool:
    return True


def _parameter(law: Likelihood) -> str:
    return f"`{law.parameter}`" if isinstance(law, OneParameter) else NO


# Whether a likelihood can do something, or what it has.
OF_LIKELIHOODS: dict[str, Callable[[Likelihood], bool | str]] = {
    "zeros": lambda law: law.takes_zeros,
    "fractions": lambda law: not law.whole,
    "every chain, `map_scale`, mode solver": _always,
    "missing entries, weights of entries": _always,
    "dense data, Dask arrays": _always,
    "sparse data, folders of shards": lambda law: law.takes_sparse,
    "learned by default": _parameter,
    '`smoothing="learn"`': lambda law: law.has_draws,
    'posterior draws, `solver="gibbs"`': lambda law: law.has_draws,
    "`score`, `impute`, `smooth`, `forecast`, `append`": _always,
    "intervals checked by default, `calibrate`": lambda law: law.counts,
}


def _fits_linear(chain: Chain) -> bool:
    """Whether its default numbers have a mode on the linear scale."""
    try:
        chain.resolve(1.0, 1).check("map", "linear")
    except ValueError:
        return False
    return True


def _learned(chain: Chain) -> str:
    names = (name for name in chain.get_params() if name != "marginal")
    return ", ".join(f"`{name}`" for name in names) or NO


OF_CHAINS: dict[str, Callable[[Chain], bool | str]] = {
    '`map_scale="log"`': _always,
    '`map_scale="linear"` with default numbers': _fits_linear,
    '`"learn"` by modes and draws': _learned,
    'posterior draws, `solver="gibbs"`': lambda chain: chain.has_law and chain.has_draws,
    "point forecasts": _always,
    "intervals": lambda chain: chain.has_law,
}


def likelihoods() -> list[Likelihood]:
    return [registry.create(registry.LIKELIHOODS, n, "likelihood") for n in registry.LIKELIHOODS]


def chains() -> list[Chain]:
    return [registry.create(registry.CHAINS, name, "chain") for name in registry.CHAINS]


def cell(found: bool | str) -> str:
    return found if isinstance(found, str) else YES if found else NO


def table(rows: dict[str, Callable[[Any], bool | str]], columns: Iterable[Any]) -> str:
    """A capability per row, a class per column."""
    columns = list(columns)
    lines = [["", *(f"`{column.name}`" for column in columns)], ["---"] * (len(columns) + 1)]
    lines += [[name, *(cell(of(column)) for column in columns)] for name, of in rows.items()]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def synced(page: str) -> str:
    """A page with the present tables."""
    tables = {
        "likelihoods": table(OF_LIKELIHOODS, likelihoods()),
        "chains": table(OF_CHAINS, chains()),
    }
    return BLOCK.sub(lambda match: match[1] + "\n" + tables[match[2]] + "\n" + match[3], page)


def main() -> None:
    PAGE.write_text(synced(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
