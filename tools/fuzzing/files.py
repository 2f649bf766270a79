"""Files of every kind that is read, damaged on purpose, and what their readers do with them.

A case follows from a whole number and the valid files that `make_seeds` wrote. Its reader has to
succeed, with numbers that are what the library promises, or to refuse it with one of our own
errors that names the file; whatever else happens is a bug. A case that went wrong is kept with
`keep`, and tests/test_fuzzed_files.py reads it again.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import shutil
import struct
import tempfile
import traceback
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random
from tokenize import TokenError
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse
from scipy.io import mmwrite

import temporalnmf
from temporalnmf import TemporalNMF, load
from temporalnmf.chains import Rate
from temporalnmf.checkpoints.file import CheckpointFile
from temporalnmf.components import ShardedComponents, block_file, write_header
from temporalnmf.effects import Events, Season, Trend
from temporalnmf.experiments.protocol import Task
from temporalnmf.experiments.runner import read_records
from temporalnmf.reading import read_table
from temporalnmf.reading.long_columns import Columns
from temporalnmf.runtime.archives import read_npz, sealed, unsealed
from temporalnmf.shards import Shards, shard_long, write_shards
from temporalnmf.solvers import Gibbs
from temporalnmf.solvers.options import flattened
from temporalnmf.summary import component_summary
from temporalnmf.timeline import timeline_of

OURS = Path(temporalnmf.__file__).parent
CORPUS = Path(__file__).parents[2] / "tests" / "corpus" / "files"
Files = dict[str, bytes]  # by path within a folder


@dataclass(frozen=True)
class FileCase:
    """A file, or the files of a folder, and the name of what reads it."""

    loader: str
    files: Files

    @property
    def suffix(self) -> str:
        """Of a file that holds the case: all files of a folder go into one archive."""
        if len(self.files) > 1:
            return ".zip"
        (name,) = self.files
        return name[name.index(".") :]


class UnexpectedError(Exception):
    """A reader did something else than to succeed or to refuse a file in our words."""


# What reads a case. Each is given a path, uses what it has read a little, and looks at it: what
# was read from a damaged file has to be as sound as anything else.


def _expect(holds: Any, promise: str) -> None:
    if not np.all(holds):
        raise UnexpectedError(f"read, but not: {promise}")


def _sound(name: str, array: Any) -> None:
    _expect(np.isfinite(array), f"{name} is finite")
    _expect(np.asarray(array) >= 0.0, f"{name} is not negative")


def _check_model(model: TemporalNMF) -> None:
    components = np.asarray(model.components_)
    _sound("components_", components)
    _sound("activations_", model.activations_)
    # `load` refuses what is further off; a fit is much closer.
    _expect(np.abs(components.sum(axis=1) - 1.0) <= 1e-6, "components sum to one")
    if (draws := model.posterior_) is not None:
        _sound("draws of components", draws.components)
        _sound("draws of activations", draws.activations)
        sums = draws.components.sum(axis=-1, dtype=float)
        _expect(np.abs(sums - 1.0) <= 1e-5, "draws of components sum to one")


# Parameters that no file sets, and those that no file raises: where a fit writes to, and its cost.
NEVER_SET = ("callback", "warm_start", "checkpoint", "checkpoint_every", "n_jobs", "verbose")
NEVER_RAISED = ("max_iter", "n_init", "n_draws", "n_tune", "n_chains")


def _check_parameters(model: TemporalNMF) -> None:
    found, default = (flattened(one.get_params(deep=False)) for one in (model, TemporalNMF()))
    for name in NEVER_SET:
        _expect(found[name] == default[name], f"{name} is not that of the file")
    for name in NEVER_RAISED:
        _expect(found[name] <= default[name], f"{name} is at most its default")


def _use_model(path: Path) -> None:
    model = load(path)
    with _later():
        _check_model(model)
        _check_parameters(model)
        known = len(model._covariate_names)
        ahead = np.full((2, known), 0.5) if known else None
        forecast = model.forecast(2, covariates=ahead)
        _sound("a forecast", forecast.values)
        _check_effects(model, forecast)
        if model.chain_.name != "none":  # which has no law for steps it has not seen
            forecast.samples("totals")
        if model._series is not None:
            inferred = _transformed(model)
            _sound("what transform returns", inferred)
        component_summary(model)


def _check_effects(model: TemporalNMF, forecast: Any) -> None:
    _sound("levels_", model.levels_)
    for name, factors in (*model.season_.items(), *model.effects_.items()):
        _sound(f"factors of {name}", factors[:, :1])
    _ = str(model.season_reason_), str(model.trend_reason_), model.trend_
    parts = forecast.explain()["expected"].to_numpy().reshape(len(forecast.times), -1)
    totals = forecast.values.sum(axis=1)
    if model.posterior_ is None and model.point == "mean":
        off = np.abs(parts.sum(axis=1) - totals)
        _expect(off <= 1e-5 * np.maximum(totals, 1e-300), "parts add up to the totals")


def _transformed(model: TemporalNMF) -> Any:
    """Activations of the data in a file, with their dates and covariates if it has any."""
    X, effects = model._series.X, model._effects
    if effects is None:
        return model.transform(X, exposure=model.exposure_)
    known = effects.design.covariates
    X = pd.DataFrame(X, index=model.times_) if model.times_.dtype.kind == "M" else X
    covariates = None if known is None else known.values
    return model.transform(X, exposure=model.exposure_, covariates=covariates)


def _go_on(make: Callable[[], TemporalNMF], data: str | None = None) -> Callable[[Path], None]:
    """Go on with a fit to `COUNTS`, in memory or in a folder beside the checkpoint."""

    def use(path: Path) -> None:
        model = make().set_params(checkpoint=str(path))
        model.fit(COUNTS if data is None else str(path.with_name(data)))
        _check_model(model)

    return use


def _use_table(**how: Any) -> Callable[[Path], None]:
    def use(path: Path) -> None:
        table = read_table(path, **how)
        repr(table)
        cells = table.X.data if sparse.issparse(table.X) else table.X
        _sound("a cell that is not missing", cells[~np.isnan(cells)])
        _expect(table.X.shape == (len(table.times), len(table.features)), "all cells have labels")
        if table.exposure is not None:
            _check_exposure(table.exposure)

    return use


def _check_exposure(exposure: Any) -> None:
    _expect(np.isfinite(exposure) & (exposure > 0.0), "the exposure is finite and positive")


def _shard(path: Path) -> None:
    shards = shard_long(path, path.with_name("sharded"), Columns("time", "feature", "value"))
    _check_shards(shards)


def _use_shards(path: Path) -> None:
    _check_shards(Shards.open(path))


def _check_shards(shards: Shards) -> None:
    for i in range(shards.n_shards):
        shards.check(i)
        shards.names(i)
        shards.missing(i)
        _sound("values by feature", shards.by_feature(i)[2])
    _sound("values by step", shards.matrix().data)
    _check_exposure(shards.exposure)


def _use_components(path: Path) -> None:
    components = ShardedComponents.open(path)
    components.fingerprint()
    components.top(2)
    _sound("components", np.asarray(components))
    _sound("their sum", np.ones(components.n_components) @ components)


def _use_records(path: Path) -> None:
    for record in read_records(path):
        task = Task(*(record[name] for name in Task._fields))
        kinds = [type(field) for field in task]
        _expect(kinds == [int, int, str, int], "a record says which fit it is of")


def GIBBS() -> TemporalNMF:
    return TemporalNMF(
        2, chain=Rate(alpha="learn"), solver=Gibbs(n_draws=6, n_tune=4, n_chains=2), random_state=0,
    )  # fmt: skip


def SOLVED() -> TemporalNMF:
    return TemporalNMF(2, chain=Rate(beta="learn"), max_iter=90, n_init=2, tol=0.0, random_state=0)


def EFFECTIVE() -> TemporalNMF:
    return TemporalNMF(
        2, season=[Season("week", strength=0.2), 5], trend=Trend(strength="learn"),
        holidays=[Events("fair", ["2001-01-03", "2001-01-09"]), Events("later", ["2001-01-15"])],
        max_iter=30, random_state=0,
    )  # fmt: skip


def SEASONAL() -> TemporalNMF:
    return SOLVED().set_params(season=[4, 7], trend=0.9)


LONG = {"time": "time", "feature": "feature", "value": "value"}
# The reader, and what it reads if a case is a folder.
LOADERS: dict[str, tuple[Callable[[Path], None], str | None]] = {
    "model": (_use_model, None),
    "sharded": (_use_model, "model.npz"),
    "checkpoint": (_go_on(GIBBS), None),
    "resumed": (_go_on(SOLVED), None),
    "seasonal": (_go_on(SEASONAL), None),
    "blocks": (_go_on(SOLVED, "data"), "state"),
    "drawn": (_go_on(GIBBS, "data"), "state.npz"),
    "wide": (_use_table(), None),
    "transposed": (_use_table(transpose=True), None),
    "timed": (_use_table(time="time", exposure="size", freq="2Y"), None),
    "long": (_use_table(**LONG), None),
    "periods": (_use_table(**LONG, exposure="size", freq="M", drop_partial=True), None),
    "sharding": (_shard, None),
    "shards": (_use_shards, "data"),
    "components": (_use_components, "parts"),
    "records": (_use_records, None),
}
# Fits that go on from files with a seal. They take longer than all else.
SEALED = ("checkpoint", "resumed", "seasonal", "blocks", "drawn")
WEIGHTS = dict.fromkeys(SEALED, 0.2)  # how often each loader is tried, 1 if not named here


# Valid files.

_RNG = np.random.default_rng(9)
COUNTS = _RNG.poisson(_RNG.gamma(2.0, 4.0, size=(15, 5))).astype(float)
YEARS = [str(year) for year in range(1990, 2005)]
FRAME = pd.DataFrame(COUNTS, columns=list("abcde"), index=pd.Index(YEARS, name="time"))


def make_seeds(folder: Path) -> Path:
    """Write valid files of every kind: <folder>/<loader>/<number>/…"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for loader, found in _seeds(Path(tempfile.mkdtemp(dir=folder.parent))).items():
            for k, files in enumerate(found):
                write_folder(files, folder / loader / str(k))
    return folder


def _seeds(scratch: Path) -> dict[str, list[Files]]:
    try:
        wide, timed, numbers = _wide_tables(), _timed_tables(), _arrays()
        return {
            "model": _models(scratch / "models"),
            "sharded": [_sharded_model(scratch / "sharded")],
            "checkpoint": [_checkpoint(GIBBS(), scratch / "checkpoint", 11)],
            "resumed": [_checkpoint(SOLVED(), scratch / "resumed", 20)],
            "seasonal": [_checkpoint(SEASONAL(), scratch / "seasonal", 20)],
            "blocks": [_blocks(SOLVED(), scratch / "blocks", "state", 20)],
            "drawn": [_blocks(GIBBS(), scratch / "drawn", "state.npz", 11)],
            "wide": [*wide, *numbers],
            "transposed": [*wide, *numbers],
            "timed": timed,
            **dict.fromkeys(("long", "periods", "sharding"), _long_tables()),
            "shards": [_shards(scratch / "shards")],
            "components": [_components(scratch / "components")],
            "records": [_records()],
        }
    finally:
        shutil.rmtree(scratch)


def _models(folder: Path) -> list[Files]:
    gaps = FRAME.copy()
    gaps.iloc[4] = np.nan
    size = np.linspace(1.0, 2.0, 15)
    models = (
        TemporalNMF(2, random_state=0).fit(gaps),
        TemporalNMF(1, chain="gap", likelihood="exponential", random_state=0).fit(COUNTS + 0.5),
        TemporalNMF(2, chain="bgar", random_state=0).fit(sparse.csr_array(COUNTS), exposure=size),
        TemporalNMF(2, chain="none", n_init=2, random_state=0).fit(COUNTS),
        TemporalNMF(1, chain="hier_rate", random_state=0).fit(gaps).calibrate(5),
        GIBBS().fit(gaps),
        *_affected(),
    )
    found = []
    for k, model in enumerate(models):
        path = model.save(folder / f"{k}.npz")
        found.append({"model.npz": _zipped(zip_members(path.read_bytes()))})
    return found


def _affected() -> Iterator[TemporalNMF]:
    """Models with effects: by the calendar, with covariates, in steps, in draws."""
    days = pd.date_range("2001-01-01", periods=15)
    dated = pd.DataFrame(COUNTS, columns=list("abcde"), index=days)
    known = pd.DataFrame({"x": np.linspace(-1.0, 2.0, 15) ** 2, "week": COUNTS[:, 0]}, index=days)
    yield EFFECTIVE().fit(dated, covariates=known)
    yield TemporalNMF(1, holidays="US", season="auto", trend=1.0, random_state=0).fit(dated)
    yield TemporalNMF(2, season=4, intervals="model", random_state=0).fit(COUNTS)
    drawn = GIBBS().set_params(season=3, trend=0.9)
    yield drawn.fit(COUNTS, covariates=known.to_numpy())


def _sharded_model(folder: Path) -> Files:
    model = TemporalNMF(2, random_state=0).fit(FRAME)
    write_folder(_components(folder), folder)
    model.components_ = ShardedComponents.open(folder / "parts")
    path = model.save(folder / "saved" / "model.npz")
    path.write_bytes(_zipped(zip_members(path.read_bytes())))
    return read_folder(path.parent)


def _components(folder: Path) -> Files:
    place, W = folder / "made" / "parts", COUNTS.T[:, :2] / COUNTS[:2].sum(axis=1)
    place.mkdir(parents=True)
    np.save(block_file(place, 0), W[:3].copy())
    np.save(block_file(place, 1), W[3:].copy())
    write_header(place, 2, [0, 3, 5])
    return read_folder(place.parent)


class _Stop(Exception):  # noqa: N818
    pass


def _checkpoint(model: TemporalNMF, folder: Path, calls: int) -> Files:
    """Of a fit to data in memory."""
    folder.mkdir()
    _stopped(model.set_params(checkpoint=str(folder / "state.npz")), COUNTS, calls)
    return read_folder(folder)


def _blocks(model: TemporalNMF, folder: Path, state: str, calls: int) -> Files:
    """Data in shards, and the checkpoint of a fit to them."""
    line = timeline_of(YEARS)
    write_shards(folder / "data", COUNTS, names=list("abcde"), timeline=line, n_shards=2)
    _stopped(model.set_params(checkpoint=str(folder / state)), str(folder / "data"), calls)
    return read_folder(folder)


def _stopped(model: TemporalNMF, X: Any, calls: int) -> None:
    """Fit until the callback was called so often: in the second run, or start, by L-BFGS."""
    told: list[int] = []

    def callback(progress: Any) -> bool:
        told.append(1)
        if len(told) == calls:
            raise _Stop
        return False

    with patch.object(CheckpointFile, "due", True), suppress(_Stop):
        model.set_params(callback=callback).fit(X)


def _wide_tables() -> list[Files]:
    text = FRAME.to_csv(lineterminator="\n")
    parquet = io.BytesIO()
    FRAME.to_parquet(parquet)
    months = FRAME.set_axis(pd.Index([f"{year}-03" for year in YEARS], name="time"))
    tabs = months.to_csv(sep="\t", lineterminator="\n")
    commas = (FRAME + 0.25).to_csv(sep=";", decimal=",", lineterminator="\n")
    return [
        {"table.csv": text.encode()},
        {"table.tsv": tabs.encode("utf-16")},
        {"table.csv": commas.encode("cp1252")},
        {"table.csv.gz": gzip.compress(text.encode(), mtime=0)},
        {"table.parquet": parquet.getvalue()},
    ]


def _timed_tables() -> list[Files]:
    frame = FRAME.assign(size=np.arange(1.0, 16.0)).reset_index()
    parquet = io.BytesIO()
    frame.to_parquet(parquet)
    text = frame.to_csv(index=False, lineterminator="\n")
    return [{"table.csv": text.encode()}, {"table.parquet": parquet.getvalue()}]


def _long_tables() -> list[Files]:
    rows = pd.DataFrame(
        {
            "time": [f"2001-{1 + k // 6:02d}-{1 + k % 28:02d}" for k in range(40)],
            "feature": [f"name {k % 7}" for k in range(40)],
            "value": [k % 5 for k in range(40)],
        }
    )
    rows["size"] = rows.groupby("time")["value"].transform("size").astype(float)
    text = rows.to_csv(index=False, lineterminator="\n")
    dates = rows.assign(
        time=pd.to_datetime(rows["time"]), feature=rows["feature"].astype("category")
    )
    found: list[Files] = [
        {"table.csv": text.encode()},
        {"table.tsv.gz": gzip.compress(text.replace(",", "\t").encode(), mtime=0)},
    ]
    for frame in (rows, dates, dates.assign(time=dates["time"].dt.to_period("D"))):
        parquet = io.BytesIO()
        frame.to_parquet(parquet)
        found.append({"table.parquet": parquet.getvalue()})
    return found


def _arrays() -> list[Files]:
    def stored(write: Callable[[Any], None]) -> bytes:
        file = io.BytesIO()
        write(file)
        return file.getvalue()

    rows = sparse.csr_array(COUNTS)
    market = stored(lambda file: mmwrite(file, sparse.coo_array(COUNTS)))
    return [
        {"table.npy": stored(lambda file: np.save(file, COUNTS))},
        {"table.npy": stored(lambda file: np.save(file, COUNTS.astype(np.int32).T))},
        {"table.npz": stored(lambda file: np.savez(file, X=COUNTS, other=COUNTS[0]))},
        {"table.npz": stored(lambda file: np.savez_compressed(file, COUNTS))},
        *(
            {
                "table.npz": stored(
                    lambda file, kind=kind: sparse.save_npz(file, rows.asformat(kind))
                )
            }
            for kind in ("csr", "csc", "coo", "bsr", "dia")
        ),
        {"table.mtx": market},
        {"table.mtx": stored(lambda file: mmwrite(file, COUNTS))},
        {"table.mtx.gz": gzip.compress(market, mtime=0)},
    ]


def _shards(folder: Path) -> Files:
    X = COUNTS.copy()
    X[3, 1] = np.nan
    write_shards(
        folder / "data", X, names=list("abcde"), timeline=timeline_of(YEARS), n_shards=2,
        exposure=np.linspace(1, 2, 15), notes=["a word"],
    )  # fmt: skip
    return read_folder(folder)


def _records() -> Files:
    """As `fit_task` makes them."""
    errors = {
        f"kle_{steps}{seen}": 1.5 for steps in ("validation", "s", "f") for seen in ("", "_seen")
    }
    records = [
        Task(split=k, init=1, model="rate", point=k)._asdict()
        | {"params": {"alpha": 300.0, "beta": [1.0, 2.0]}, "n_iter": 12, "stop_reason": "a word"}
        | errors
        | {"seconds": 0.25}
        for k in range(3)
    ]
    records[1]["kle_s"] = float("nan")  # a short series may have no such step
    return {"fits.jsonl": "".join(f"{json.dumps(record)}\n" for record in records).encode()}


def write_folder(files: Files, folder: Path) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def read_folder(folder: Path) -> Files:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# Damage.

WHOLE = (0, 1, -1, 127, 255, 65535, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63))
TOKENS = [
    b"NaN", b"nan", b"1e999", b"-1", b"inf", b"-inf", b"1e308", b"1e-320", b"9" * 40, b"0x10", b"",
    b"%%MatrixMarket matrix array real general\n",
    b"%%MatrixMarket matrix coordinate pattern symmetric\n",
    b"1000000000000 1000000000000 1\n", b"3 3 99999999999\n", b"PK\x03\x04", b"PK\x01\x02",
    b"PK\x05\x06", b"\x93NUMPY\x01\x00", b"'descr': '|O'", b"'fortran_order': True", b"(-1, 3)",
    b"(1000000000000000000,)", b"PAR1", b"\x1f\x8b\x08", b"\xff\xfe", b"\xef\xbb\xbf", b"\x00",
    b"\"", b",", b";", b"\t", b"\r", b"\n", b"\r\n", b"2001-02-30", b"9999999-01-01", b"0000-00-00",
    b"Q4 2001", b"2001-W54", b"12:00", b"+1", b"1_0", "١٢".encode(), "\u2028".encode(), b"..",
    b"[" * 3000, b"{\"a\":" * 3000, b"null", b"true", b"../../etc/passwd", b"symmetric", b"complex",
    b"hermitian",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2, 0.5, -0.5, 1e308, 1e-320, 10**30, -(10**30), 2**31, 2**63,
    float("nan"), float("inf"), "", "x", "learn", "auto", "nan", "../../etc/passwd", [], {}, [1],
    [[]], [1, "x"], {"name": "rate"}, {"name": "none", "parameters": {}}, "DEEP", "datetime64[D]",
    "int64", "object", "V8", "M8", "str", "day", "month", "as given", "step of 0", "step of x",
    "3 days",
    "week", {"kind": "season", "period": "week"}, {"kind": "trend"}, {"kind": "influence"},
    {"kind": "season", "period": 5, "terms": 2, "strength": 1e308, "steps": 5.0},
    {"kind": "holidays", "country": "XX", "names": []}, {"kind": "holidays", "country": "DE"},
    {"kind": "events", "event": "x", "days": ["9999-12-31", "0001-01-01"]}, "tried", "given",
    ["tried", [["week", 1e308]]], ["tried", []], ["2001-13-01"], {"a": ["2001-01-01"]},
    "exponential", "poisson", "gibbs", "sharded", "\ud800", "x" * 5000,
]  # fmt: skip
DESCRS = (
    "'|O'", "'<f8'", "'>f8'", "'<f4'", "'<f2'", "'<f16'", "'<i8'", "'|b1'", "'<U5'", "'<c16'",
    "'<M8[D]'", "'V8'", "'<i4'", "'<u8'", "'|S0'", "'<U0'", "[('a', '<f8'), ('b', '|O')]", "[]",
    "'x'", "5",
    "None", "[('a', '<f8', (1000000000,))]",
)  # fmt: skip
SHAPES = (
    "()", "(0,)", "(0, 5)", "(15, 0)", "(-1, 5)", "(15, -5)", "(1000000000000000000,)", "(75,)",
    "(15, 5, 1)", "(1000000, 1000000)", "(5, 15)", "(True,)", "(12.0, 5)", "5", "(2, 2)", "None",
    "(3,)",
    "(9223372036854775807, 9223372036854775807)", "(4294967296, 4294967296)",
)  # fmt: skip


@lru_cache(maxsize=1)
def kept_seeds(folder: Path) -> dict[str, list[Files]]:
    return {
        loader.name: [read_folder(place) for place in sorted(loader.iterdir())]
        for loader in sorted(folder.iterdir())
    }


def make_case(folder: Path, seed: int) -> FileCase:
    """The case of a number, made of the files that `make_seeds` wrote to the folder."""
    rng, seeds = Random(seed), kept_seeds(folder)
    (loader,) = rng.choices(list(seeds), [WEIGHTS.get(loader, 1.0) for loader in seeds])
    found = seeds[loader]
    files = dict(rng.choice(found))
    hit = [name for name in files if loader not in SEALED or name.startswith("state")]
    for _ in range(rng.choice((1, 1, 1, 2))):
        name = rng.choice(hit)
        if name not in files:
            continue
        others = [data for other in found for data in other.values()]
        if len(files) > 1 and rng.random() < 0.05:
            del files[name]
        elif loader in SEALED and rng.random() < 0.7:
            files[name] = _tried(_under_seal, rng, name, files[name], others)
        else:
            files[name] = _damaged(rng, name, files[name], others)
    return FileCase(loader, files)


def _damaged(rng: Random, name: str, data: bytes, others: list[bytes]) -> bytes:
    """Bytes in which something is wrong, if possible behind whatever they are packed in."""
    ways = {
        ".gz": _in_gzip, ".npz": _in_zip, ".npy": _in_npy, ".json": _in_json,
        ".parquet": _in_parquet,
        ".csv": _in_text, ".tsv": _in_text, ".mtx": _in_text, ".txt": _in_text, ".jsonl": _in_text,
    }  # fmt: skip
    way = ways.get(Path(name).suffix)
    if way is None or rng.random() >= 0.7:
        return _in_bytes(rng, data, others)
    return _tried(way, rng, name, data, others)


def _tried(way: Any, rng: Random, name: str, data: bytes, others: list[bytes]) -> bytes:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return bytes(way(rng, name, data, others))
    except Exception:  # damaged before, so that it cannot be taken apart any more
        return _in_bytes(rng, data, others)


def _in_bytes(rng: Random, data: bytes, others: list[bytes]) -> bytes:
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        n = len(found)
        at = rng.randrange(n + 1)
        if n > 40 and rng.random() < 0.3:  # headers and footers
            at = rng.choice((rng.randrange(40), n - rng.randrange(40)))
        what = rng.randrange(8)
        if what == 0 and at < n:
            found[at] ^= 1 << rng.randrange(8)
        elif what == 1 and at < n:
            found[at] = rng.randrange(256)
        elif what == 2:
            del found[at:]
        elif what == 3:
            length = rng.choice((1, 4, 16, 200))
            found[at:at] = found[at : at + length]
        elif what == 4:
            del found[at : at + rng.choice((1, 2, 8, 50))]
        elif what == 5:
            other = rng.choice(others)
            found[at:] = other[rng.randrange(len(other) + 1) :]
        elif what == 6:
            number = _number_bytes(rng)
            end = at + len(number) if rng.random() < 0.7 else at
            found[at:end] = number
        else:
            token = rng.choice(TOKENS)
            found[at : at + rng.choice((0, len(token)))] = token
    return bytes(found)


def _number_bytes(rng: Random) -> bytes:
    order, kind = rng.choice("<>"), rng.choice("hiq")
    bits = 8 * struct.calcsize(f"={kind}")
    value = rng.choice(WHOLE) % (1 << bits)
    return struct.pack(f"{order}{kind.upper()}", value)


def _in_gzip(rng: Random, name: str, data: bytes, others: list[bytes]) -> bytes:
    inner = _damaged(rng, name.removesuffix(".gz"), gzip.decompress(data), others)
    if rng.random() < 0.1:
        return gzip.compress(inner, mtime=0) * 2
    return gzip.compress(inner, mtime=0)


def zip_members(data: bytes) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return [(name, file.read(name)) for name in file.namelist()]


def _zipped(members: list[tuple[str, bytes]]) -> bytes:
    """The same bytes for the same members, whenever it is done."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members:
            file.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _in_zip(rng: Random, name: str, data: bytes, others: list[bytes]) -> bytes:
    members = zip_members(data)
    for _ in range(rng.choice((1, 1, 2))):
        k = rng.randrange(len(members))
        member, content = members[k]
        what = rng.random()
        if what < 0.75:
            members[k] = member, _damaged(rng, member, content, [c for _, c in members])
        elif what < 0.83:
            del members[k]
        elif what < 0.87:
            members[k] = (
                rng.choice(("../x.npy", "/etc/x.npy", "x.npy", "", "é.npy", member[:-4])),
                content,
            )
        elif what < 0.91:
            members.append((member, rng.choice(members)[1]))
        else:
            other = rng.randrange(len(members))
            members[k], members[other] = (member, members[other][1]), (members[other][0], content)
    packed = bytearray(_zipped(members))
    if rng.random() < 0.08:  # sizes that are not true
        at = packed.find(b"PK\x01\x02", rng.randrange(len(packed)))
        if at >= 0:
            place = at + rng.choice((20, 24))
            packed[place : place + 4] = struct.pack("<I", rng.choice((0, 1, 2**31 - 1, 2**32 - 2)))
    return bytes(packed)


def _in_npy(rng: Random, name: str, data: bytes, others: list[bytes]) -> bytes:
    length = struct.unpack("<H", data[8:10])[0]
    head, numbers = data[10 : 10 + length].decode("latin1"), data[10 + length :]
    array = np.load(io.BytesIO(data), allow_pickle=False)
    what = rng.random()
    if what < 0.55:
        return npy_bytes(_other_array(rng, array, what < 0.35))
    if what < 0.85:
        descr = rng.choice(DESCRS) if rng.random() < 0.5 else repr(array.dtype.str)
        shape = rng.choice(SHAPES) if rng.random() < 0.6 else repr(array.shape)
        order = rng.choice(("True", "False", "0", "None"))
        head = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"
        version = rng.choice((1, 1, 1, 2, 3))
        text = head.encode("latin1") + b" " * (-(len(head) + 11) % 64) + b"\n"
        size = struct.pack("<H" if version == 1 else "<I", len(text))
        return b"\x93NUMPY" + bytes((version, 0)) + size + text + numbers
    return data[: 10 + length] + _in_bytes(rng, numbers, others)


def _other_array(rng: Random, array: Any, one: bool) -> Any:
    """With one other number, or as another array altogether."""
    if one and array.size and array.dtype.kind in "fiub":
        array = array.copy()
        odd = (0, 1, -1, 2, 10**9, np.nan, np.inf, -np.inf, 1e308, 1e-320, 1e17, 0.5)
        array.flat[rng.randrange(array.size)] = np.array(rng.choice(odd)).astype(array.dtype)
        return array
    odd_arrays: tuple[Callable[[], Any], ...] = (
        lambda: array[:-1], lambda: array[..., :-1], lambda: array.T, lambda: array.ravel(),
        lambda: array[None], lambda: np.concatenate([array, array]), lambda: array[:0],
        lambda: array.astype(">f8"), lambda: array.astype(np.float16),
        lambda: array.astype(str),
        lambda: array.astype(complex), lambda: array[::-1], lambda: array * 0, lambda: -array,
        lambda: array.astype(np.uint64), lambda: array.astype(bool),
        lambda: np.array(array.flat[0]),
        lambda: np.asfortranarray(array), lambda: array.astype(np.longdouble),
    )  # fmt: skip
    return np.asarray(rng.choice(odd_arrays)())


def _under_seal(rng: Random, name: str, data: bytes, others: list[bytes]) -> bytes:
    """Other arrays, and a seal that fits them: nobody but who reads the arrays can tell."""
    arrays = unsealed(read_npz(io.BytesIO(data)))
    for _ in range(rng.choice((1, 1, 2, 4))):
        of = rng.choice(sorted(arrays))
        array, what = arrays[of], rng.random()
        with suppress(IndexError, TypeError, ValueError):  # not every array can be changed so
            if what < 0.06 and len(arrays) > 1:
                del arrays[of]
            elif what < 0.14:
                arrays[of] = rng.choice(list(arrays.values()))
            elif what < 0.2:
                arrays[rng.choice((f"{of}x", f"x{of}", "W", "start.9.H", "9.W"))] = array
            elif array.dtype.kind == "U" and what < 0.8:
                arrays[of] = np.array(_in_json(rng, of, str(array).encode(), others).decode())
            else:
                arrays[of] = _other_array(rng, array, what < 0.6)
    return _zipped([(f"{of}.npy", npy_bytes(array)) for of, array in sealed(arrays).items()])


def npy_bytes(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def _in_json(rng: Random, name: str, data: bytes, others: list[bytes]) -> bytes:
    content: Any = json.loads(data)
    for _ in range(rng.choice((1, 1, 2))):
        content = _in_value(rng, content)
    text = json.dumps(content)
    return text.replace('"DEEP"', rng.choice(("[" * 9000 + "]" * 9000, '{"a":' * 9000))).encode()


def _in_value(rng: Random, value: Any) -> Any:
    """Something else at a random place of a tree."""
    if isinstance(value, dict | list) and value and rng.random() < 0.9:
        key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        what = rng.random()
        if what < 0.12:
            del value[key]
        elif what < 0.18 and isinstance(value, list):
            value.insert(key, value[key])
        elif what < 0.18:
            value[rng.choice(("x", "chain", "alpha", *NEVER_SET, *NEVER_RAISED))] = value[key]
        else:
            value[key] = _in_value(rng, value[key])
        return value
    return deepcopy(rng.choice(VALUES))  # or the next damage would be to the list itself


def _in_text(rng: Random, name: str, data: bytes, others: list[bytes]) -> bytes:
    if name.endswith(".jsonl"):
        lines = data.splitlines()
        k = rng.randrange(len(lines))
        lines[k] = _in_json(rng, name, lines[k], others)
        return b"\n".join(lines) + b"\n"
    wide = data[:2] == b"\xff\xfe"
    lines = (data.decode("utf-16").encode() if wide else data).split(b"\n")
    for _ in range(rng.choice((1, 1, 2, 5))):
        k = rng.randrange(len(lines))
        what = rng.random()
        if what < 0.6:
            sign = next((s for s in (b"\t", b";", b",", b" ") if s in lines[k]), b",")
            cells = lines[k].split(sign)
            cells[rng.randrange(len(cells))] = rng.choice(TOKENS)
            lines[k] = sign.join(cells)
        elif what < 0.7:
            lines.insert(k, rng.choice(lines))
        elif what < 0.8 and len(lines) > 1:
            del lines[k]
        elif what < 0.9:
            other = rng.randrange(len(lines))
            lines[k], lines[other] = lines[other], lines[k]
        else:
            lines[k] = _in_bytes(rng, lines[k], others)
    text = b"\n".join(lines)
    return text.decode("utf-8", errors="replace").encode("utf-16") if wide else text


def _in_parquet(rng: Random, name: str, data: bytes, others: list[bytes]) -> bytes:
    if rng.random() < 0.3:  # what is at the end of the file tells where all else is
        (length,) = struct.unpack("<I", data[-8:-4])
        start = len(data) - 8 - length
        footer = _in_bytes(rng, data[start:-8], others)
        return data[:start] + footer + struct.pack("<I", len(footer)) + b"PAR1"
    table = pq.read_table(io.BytesIO(data))
    j = rng.randrange(table.num_columns)
    column, n = table.field(j).name, table.num_rows
    odd: tuple[Callable[[], Any], ...] = (
        lambda: pa.nulls(n), lambda: pa.array([[1.0]] * n), lambda: pa.array([{"a": 1}] * n),
        lambda: pa.array([True, False] * n)[:n], lambda: pa.array([b"\xff\x00"] * n),
        lambda: pa.array([1] * n, pa.decimal128(20, 3)), lambda: pa.array(range(n), pa.date32()),
        lambda: pa.array(range(n), pa.time64("ns")), lambda: pa.array(range(n), pa.duration("s")),
        lambda: pa.array(range(n), pa.timestamp("ns", tz="UTC")), lambda: pa.array([2**63] * n,
        pa.uint64()),
        lambda: pa.array([2**62 + k for k in range(n)], pa.timestamp("s")),
        lambda: pa.array([""] * n),
        lambda: pa.array([float("nan")] * n), lambda: pa.array([1e308] * n),
        lambda: pa.array(["1"] * n),
        lambda: pa.array(["x", None] * n)[:n].dictionary_encode(), lambda: pa.array([-1.0] * n),
        lambda: pa.array([k / 3 for k in range(n)], pa.float32()),
        lambda: pa.array([float("inf")] * n),
        lambda: pa.array([k * 10**12 for k in range(n)], pa.int64()), lambda: pa.array(range(n),
        pa.int8()),
        lambda: pa.array([1] * n, pa.float16()), lambda: pa.array(range(n)).dictionary_encode(),
        lambda: pa.array(["1e400", "0"] * n)[:n], lambda: pa.array([k * 1e300 for k in range(n)]),
    )  # fmt: skip
    what = rng.random()
    if what < 0.75:
        table = table.set_column(j, column, rng.choice(odd)())
    elif what < 0.85:
        table = table.slice(0, rng.choice((0, 1, 2, 3)))
    elif what < 0.95:
        names = list(table.column_names)
        names[j] = rng.choice(("", "time", "feature", names[0], "x", "\u202e"))
        table = table.rename_columns(names)
    else:
        table = table.replace_schema_metadata({b"pandas": rng.choice(TOKENS), b"x": b"y"})
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


# What is allowed to happen.


class _later:  # noqa: N801
    """What comes out of a model that was read is about arguments, and need not name its file."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None:
            error.add_note("later")


def run(case: FileCase) -> str:
    """Have a case read: "read", "refused", or an `UnexpectedError`.

    A refusal whose cause was none that files have, such as a TypeError, is "refused: TypeError".
    """
    use, target = LOADERS[case.loader]
    folder = Path(tempfile.mkdtemp(prefix="hostile-"))
    try:
        write_folder(case.files, folder)
        path = folder / (target or next(iter(case.files)))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                use(path)
                found = "read"
            except Exception as error:
                if reason := _wrong_with(error, path):
                    raise UnexpectedError(f"{case.loader}, {path.name}: {reason}") from error
                found = _refusal(error)
        if reason := _wrong_with_warnings(said):
            raise UnexpectedError(f"{case.loader}, {path.name}: {reason}")
        return found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


outcome = run


# What libraries say of damaged files, and modules that look up what a file has to hold by its name.
CAUSES = (
    ValueError, OSError, zipfile.BadZipFile, zlib.error, EOFError, struct.error, csv.Error,
    RecursionError, TokenError, pa.ArrowException,
)  # fmt: skip
LOOKUPS = [
    OURS / name
    for name in (
        "runtime/archives.py", "reading/arrays.py", "checkpoints/file.py", "checkpoints/fits.py",
        "components.py", "shards/folder.py", "persistence/models.py", "persistence/arrays.py",
        "persistence/effects.py",
        "persistence/calibrations.py", "timeline/grid.py", "timeline/spacing.py",
    )
]  # fmt: skip


def _refusal(error: BaseException) -> str:
    odd = [type(cause).__name__ for cause in _causes(error) if not _natural(cause)]
    return f"refused: {odd[-1]}" if odd else "refused"


def _natural(cause: BaseException) -> bool:
    """Whether an error is a way to notice damage, and not one to stumble over it."""
    if isinstance(cause, CAUSES):
        return True
    places = [Path(frame.filename) for frame in traceback.extract_tb(cause.__traceback__)]
    if not any(place.is_relative_to(OURS) for place in places):
        return True  # a library kept it to itself
    return isinstance(cause, KeyError) and places[-1] in LOOKUPS


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)


def _wrong_with(error: Exception, path: Path) -> str | None:
    """Why an error is not one of those that our own code means to raise."""
    if isinstance(error, UnexpectedError):
        return str(error)
    kind, told = type(error).__name__, " ".join(str(error).split())[:300]  # in a line
    if any(_lacks_memory(cause) for cause in _causes(error)):
        return f"out of memory ({kind}: {told})"
    if not isinstance(error, ValueError | OSError):
        return f"{kind}: {told}"
    frames = traceback.extract_tb(error.__traceback__)
    if not Path(frames[-1].filename).is_relative_to(OURS):
        return f"{kind} of {frames[-1].filename}: {told}"
    if not str(error).strip():
        return f"{kind} without a word"
    later = "later" in getattr(error, "__notes__", ())
    if not later and path.name not in str(error):
        return f"{kind} does not name the file: {told}"
    return None


def _lacks_memory(cause: BaseException) -> bool:
    """Arrow's word is another matter: it asks for what a page says it has, 2 GB at the most, and
    would find out next."""
    return isinstance(cause, MemoryError) and not isinstance(cause, pa.ArrowException)


def _wrong_with_warnings(said: list[warnings.WarningMessage]) -> str | None:
    """Ours are allowed, a few of them."""
    for warning in said:
        if not issubclass(warning.category, UserWarning):
            what = f"{warning.category.__name__}: {warning.message}"
            return f"{what} ({warning.filename}:{warning.lineno})"
    if len(said) > 20:
        return f"a flood of {len(said)} warnings, such as: {said[-1].message}"
    return None


# Cases that went wrong are kept.


def keep(case: FileCase, seed: int, reason: str, folder: Path = CORPUS) -> Path:
    """Write a case as one file: <loader>-<seed>-<reason>.<suffix>."""
    _, ours, told = reason.partition(f"{UnexpectedError.__name__}: {case.loader}, ")
    reason = told.partition(": ")[2] if ours else reason  # without what its name says already
    words = "_".join("".join(c if c.isalnum() else " " for c in reason).split())[:40].strip("_")
    path = folder / f"{case.loader}-{seed}-{words}{case.suffix}"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        _zipped(list(case.files.items())) if len(case.files) > 1 else case.files[_only(case)]
    )
    return path


def _only(case: FileCase) -> str:
    (name,) = case.files
    return name


def kept(path: Path) -> FileCase:
    """A case that `keep` wrote."""
    loader = path.name.partition("-")[0]
    data = path.read_bytes()
    if path.name.endswith(".zip"):
        return FileCase(loader, dict(zip_members(data)))
    return FileCase(loader, {f"table{path.name[path.name.index('.') :]}": data})
