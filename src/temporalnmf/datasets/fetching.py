"""Finding, downloading, caching and checking of datasets that do not come with the package."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from .._typing import Array
from ..messages.errors import Arg, Text
from ..messages.warning import warn
from ..runtime.archives import read_npy, read_npz, refuse_larger, refuse_wild_indices
from ..runtime.files import written_whole

if TYPE_CHECKING:
    from sklearn.utils import Bunch

# Largest length of a line of a source, in bytes, and of a name, in characters: NumPy stores all
# names of an array with the length of the longest.
LONGEST_LINE, LONGEST_NAME = 1 << 20, 1000


class Counts(NamedTuple):
    """A matrix with its labels, features × times as in the paper."""

    values: Array  # (features, times)
    features: Array  # (features,)
    times: Array  # (times,)
    remarks: str = ""
    source: str = ""
    labels_inferred: bool = False
    as_given: bool = False  # prepared elsewhere


@dataclass(frozen=True)
class Dataset:
    """A dataset of the paper: its known facts, and how its source is prepared."""

    name: str
    feature: str
    time: str
    shape: tuple[int, int]
    total: int | None
    times: Sequence[int] | Sequence[str]
    url: str
    sources: tuple[str, ...]  # patterns of file names; the first is the name of the download
    prepare: Callable[[Path], Counts]
    about: str
    stand_ins: tuple[str, ...] = ()

    @property
    def prepared(self) -> tuple[str, ...]:
        return f"{self.name}.npy", f"{self.name}.npz"

    @property
    def caller(self) -> str:
        return f"fetch_{self.name}"


def as_bunch(
    data: Array,
    features: Array,
    times: Array,
    time: str,
    caller: str,
    as_frame: bool,
    **more: object,
) -> Bunch:
    """Result of a loader; `data` is (times, features)."""
    from sklearn.utils import Bunch  # it imports pandas

    frame = None
    if as_frame:
        try:
            import pandas as pd
        except ImportError as error:
            remedy = '`pip install "temporalnmf[io]"`'
            raise ImportError(f"{caller}(as_frame=True) needs pandas: {remedy}.") from error
        frame = pd.DataFrame(data, index=pd.Index(times, name=time), columns=features)
    shown = data if frame is None else frame
    return Bunch(data=shown, feature_names=features, times=times, frame=frame, **more)


def assemble(dataset: Dataset, counts: Counts, *, as_frame: bool, **more: object) -> Bunch:
    """Result of a fetcher, with a warning if it is not the paper's matrix."""
    stand_in = counts.as_given and counts.values.shape != dataset.shape
    difference = "" if stand_in else _difference(dataset, counts)
    if difference:
        warn(f"{difference} {counts.remarks}".rstrip())
    known = "shape" if dataset.total is None else "shape and total"
    checked = "" if stand_in else f"Checked by {known}, no checksum known."
    notes = [f"Read from {counts.source}.", counts.remarks, checked, difference]
    more["DESCR"] = "\n".join([dataset.about, *filter(None, notes), ""])
    more |= {"source": counts.source, "labels_inferred": counts.labels_inferred}
    data = np.ascontiguousarray(counts.values.T, dtype=np.float64)
    time, caller = dataset.time, dataset.caller
    return as_bunch(data, counts.features, counts.times, time, caller, as_frame, **more)


def find(
    dataset: Dataset, data: str | os.PathLike[str] | None, allow_stand_in: bool = False
) -> Counts:
    """The dataset from `data`, TEMPORALNMF_DATA, the cache or the network, in this order."""
    names = (*dataset.prepared, *dataset.sources, *(dataset.stand_ins if allow_stand_in else ()))
    folders = []
    if data is not None:
        given = Path(data).expanduser()
        if given.is_file():
            return read(dataset, given, any_shape=bool(dataset.stand_ins))
        if not given.is_dir():
            asked = Arg("data", repr(str(data)))
            raise FileNotFoundError(Text("{asked}: there is no such file or folder.", asked=asked))
        if path := first([given], names):
            return read(dataset, path, any_shape=allow_stand_in)
        folders = [given]

    if chosen := os.environ.get("TEMPORALNMF_DATA"):
        folders.append(Path(chosen).expanduser())
    if cache := cache_folder():
        folders.append(cache)
    path = first(folders, names) or _downloaded(dataset, cache, folders)
    counts = read(dataset, path, any_shape=allow_stand_in)
    if cache and path == cache / dataset.sources[0]:
        counts = counts._replace(source=dataset.url)
    if cache and path.name not in dataset.prepared and not counts.as_given:
        keep(counts, cache / f"{dataset.name}.npz")
    return counts


def first(folders: Sequence[Path], patterns: Iterable[str]) -> Path | None:
    """The first file that exists; patterns take precedence over folders."""
    places = ((folder, pattern) for pattern in patterns for folder in folders)
    return next((path for folder, pattern in places for path in sorted(folder.glob(pattern))), None)


def cache_folder() -> Path | None:
    """TEMPORALNMF_CACHE, or the user's cache folder, if pooch is installed."""
    if chosen := os.environ.get("TEMPORALNMF_CACHE"):
        return Path(chosen).expanduser()
    try:
        import pooch
    except ImportError:
        return None
    return Path(pooch.os_cache("temporalnmf"))


def download(url: str, path: Path) -> None:
    """Download completely or not at all."""
    import pooch

    pooch.retrieve(url, known_hash=None, fname=path.name, path=path.parent)


def _downloaded(dataset: Dataset, cache: Path | None, looked_in: list[Path]) -> Path:
    """The source file, downloaded to the cache; errors say which file to put where."""
    where = ", ".join(map(str, looked_in)) or "any folder (TEMPORALNMF_DATA is not set)"
    missing = f"{dataset.caller}: {dataset.name}.npy was not found in {where}"
    remedy = (
        f"Put {dataset.name}.npy ({_form(dataset)}) into a folder and set TEMPORALNMF_DATA to it, "
        f"or put the source file {' or '.join(dataset.sources)} into {cache or 'that folder'}."
    )
    if stand_in := first(looked_in, dataset.stand_ins):
        remedy += f" Or use the stand-in, {stand_in}: {dataset.caller}(allow_stand_in=True)."
    needs_pooch = 'a download needs pooch: `pip install "temporalnmf[data]"`'
    if cache is None:
        raise ImportError(f"{missing}, and {needs_pooch}. {remedy}")
    path = cache / dataset.sources[0]
    try:
        download(dataset.url, path)
    except ImportError as error:
        raise ImportError(f"{missing}, and {needs_pooch}. {remedy}") from error
    except OSError as error:
        failed = f"the download from {dataset.url} failed ({error})"
        raise FileNotFoundError(f"{missing}, and {failed}. {remedy}") from error
    return path


def read(dataset: Dataset, path: Path, *, any_shape: bool) -> Counts:
    """Read a matrix with its labels beside it, a file of `keep`, or a source to prepare."""
    with reading(path):
        counts = _read(dataset, path)
        _check_form(counts)
    if counts.as_given and counts.values.shape != dataset.shape and not any_shape:
        remedy = "Is it another dataset, or transposed?"
        if dataset.stand_ins:
            remedy = "To use it as a stand-in, set {stand_in} or give the file itself as {data=}."
        expected = f"{dataset.name} is {_form(dataset)}"
        message = f"{{path}} is {_by(counts.values.shape)}; {expected}. {remedy}"
        raise ValueError(Text(message, path=path, stand_in=Arg("allow_stand_in", "True")))
    return counts if counts.source else counts._replace(source=str(path))


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors about a damaged file into a ValueError."""
    try:
        yield
    except (FileNotFoundError, PermissionError, MemoryError):
        raise
    except Exception as error:  # libraries raise many kinds of errors for damaged files
        reason = str(error).rstrip(". ") or type(error).__name__
        remedy = "It may be damaged or cut short: replace or delete it to have it fetched again."
        raise ValueError(f"{path} could not be read: {reason}. {remedy}") from error


def _read(dataset: Dataset, path: Path) -> Counts:
    if path.suffix == ".npy":
        with path.open("rb") as file:
            return _labelled(dataset, read_npy(file, path.stat().st_size), path)
    if path.suffix == ".npz":
        arrays = read_npz(path)
        if "counts" in arrays:
            values, features, times = arrays["counts"], arrays["features"], arrays["times"]
            return Counts(values, features, times, str(arrays["remarks"]), str(arrays["source"]))
        if "format" in arrays:
            matrix = sparse.load_npz(path)
            if matrix.format in ("csr", "csc", "bsr"):
                refuse_wild_indices(matrix)
            refuse_larger(8 * matrix.shape[0] * matrix.shape[1], "its matrix")
            return _labelled(dataset, matrix.toarray(), path)
    return dataset.prepare(path)


def _labelled(dataset: Dataset, values: Array, path: Path) -> Counts:
    """A matrix with labels from the files beside it, or numbered ones."""
    if values.ndim != 2:
        raise ValueError(f"it has {values.ndim} axes, not two")
    rows, columns = values.shape
    features, remarks, inferred = _names(dataset, path, rows)
    times = _lines(path.with_name(f"{path.stem}_times.txt"), columns)
    if times is None:
        times = np.array(dataset.times) if columns == len(dataset.times) else np.arange(columns)
    return Counts(values, features, times, remarks, labels_inferred=inferred, as_given=True)


def _names(dataset: Dataset, path: Path, rows: int) -> tuple[Array, str, bool]:
    """Names of the rows, a remark on them, and whether they are inferred."""
    named = _lines(path.with_name(f"{path.stem}_labels.txt"), rows)
    if named is not None:
        return named, "", False
    inferred = _lines(path.with_name(f"{path.stem}_labels_inferred.txt"), rows)
    if inferred is not None:
        remark = f"The names of the {dataset.feature}s are inferred: some are wrong or unknown."
        return inferred, remark, True
    numbered = np.array([f"{dataset.feature}_{row}" for row in range(rows)])
    return numbered, f"The file does not name its {dataset.feature}s: they are numbered.", False


def _lines(path: Path, number: int) -> Array | None:
    if not path.exists():
        return None
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    if len(lines) != number:
        raise ValueError(f"{path.name} has {len(lines)} labels for {number} rows or columns")
    return np.array(lines)


def _check_form(counts: Counts) -> None:
    values, shape = counts.values, counts.features.shape + counts.times.shape
    if values.shape != shape or values.ndim != 2 or values.size == 0:
        labels = f"{counts.features.size} names and {counts.times.size} times"
        raise ValueError(f"it holds {_by(values.shape)} counts, {labels}")
    if values.dtype.kind not in "iuf":
        raise ValueError(f"it holds {values.dtype}, not numbers")
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError("it holds counts that are negative or not finite")


def keep(counts: Counts, path: Path) -> None:
    """Write prepared counts, for `read`."""
    with written_whole(path) as partial:
        np.savez_compressed(
            partial, counts=counts.values, features=counts.features, times=counts.times,
            remarks=counts.remarks, source=counts.source,
        )  # fmt: skip


def _difference(dataset: Dataset, counts: Counts) -> str:
    """How counts differ from the paper's in shape and total; empty if they do not."""
    values, total = counts.values, dataset.total
    if values.shape == dataset.shape and total in (None, values.sum()):
        return ""
    wanted = _by(dataset.shape) + ("" if total is None else f" with a total of {total:,}")
    found = f"{_by(values.shape)} with a total of {values.sum():,}"
    return f"{dataset.caller}: {counts.source} gives {found}; the paper's is {wanted}."


def lines_of(file: IO[bytes]) -> Iterator[str]:
    """Lines of a source, whose names may have any bytes and separators."""
    for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), b""), 1):
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            raise ValueError(f"line {number:,} is longer than {LONGEST_LINE:,} bytes")
        yield line.decode(errors="replace")


def left_out_remark(left_out: Counter[str]) -> str:
    """Text about what was left out of a source; empty if nothing was."""
    listed = ", ".join(f"{number:,} {what}" for what, number in sorted(left_out.items()))
    return f"Left out of the source: {listed}." if listed else ""


def _by(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape))


def _form(dataset: Dataset) -> str:
    return f"{_by(dataset.shape)} {dataset.feature}s × {dataset.time}s"
