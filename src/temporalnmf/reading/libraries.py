"""pandas and pyarrow. They are optional and slow to load: each is imported on first use."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING


def load(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        needed = "Long tables, Parquet files, pandas and polars frames need pandas and pyarrow"
        raise ImportError(f'{needed}: pip install "temporalnmf[io]".') from error


if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq
else:

    class _Library:
        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> object:
            return getattr(load(self._name), attribute)

    pd, pa, pc = _Library("pandas"), _Library("pyarrow"), _Library("pyarrow.compute")
    pa_csv, pq = _Library("pyarrow.csv"), _Library("pyarrow.parquet")

__all__ = ["load", "pa", "pa_csv", "pc", "pd", "pq"]
