"""Datasets that do not come with the package: where they are looked for, kept and checked."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..messages.warning import warn
from ..runtime.archives import read_npy, read_npz, refuse_larger, refuse_wild_indices
from ..runtime.files import written_whole

if TYPE_CHECKING:
    from sklearn.utils import Bunch

Array = NDArray[Any]

# Bytes of a line of a source, and characters of a name in it. A longer name would be given the room
# of all others, since NumPy keeps text of one width.
LONGEST_LINE = 1 << 20
LONGEST_NAME = 1000


class Counts(NamedTuple):
    """A matrix with its labels, features × times as in the paper."""

    values: Array  # (features, times)
    features: Array  # (features,)
    times: Array  # (times,)
    remarks: str = ""
    source: str = ""
    labels_inferred: bool = False
    as_given: bool = False  # a matrix that was prepared elsewhere


@dataclass(frozen=True)
class Dataset:
    """What is known of a dataset of the paper, and how its source is prepared."""

    name: str
    feature: str
    time: str
    shape: tuple[int, int]
    total: int | None
    times: Sequence[Any]
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
    *,
    time: str,
    caller: str,
    as_frame: bool,
    **more: Any,
) -> Bunch:
    """What a loader returns; `data` is (times, features)."""
    from sklearn.utils import Bunch  # it imports pandas

    frame = None
    if as_frame:
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                f"{caller}(as_frame=True) needs pandas; install it with "
                '`pip install "temporalnmf[io]"`.'
            ) from error
        frame = pd.DataFrame(data, index=pd.Index(times, name=time), columns=features)
    return Bunch(
        data=data if frame is None else frame,
        feature_names=features,
        times=times,
        frame=frame,
        **more,
    )


def assemble(dataset: Dataset, counts: Counts, *, as_frame: bool, **more: Any) -> Bunch:
    """The result of a fetcher, with a warning if it is not the paper's matrix."""
    stand_in = counts.as_given and counts.values.shape != dataset.shape
    difference = "" if stand_in else _difference(dataset, counts)
    if difference:
        warn(f"{difference} {counts.remarks}".rstrip())
    known = "shape" if dataset.total is None else "shape and total"
    checked = "" if stand_in else f"Checked by {known}, no checksum known."
    notes = [f"Read from {counts.source}.", counts.remarks, checked, difference]
    return as_bunch(
        np.ascontiguousarray(counts.values.T, dtype=np.float64),
        counts.features,
        counts.times,
        time=dataset.time,
        caller=dataset.caller,
        as_frame=as_frame,
        DESCR=dataset.about + "\n" + "\n".join(filter(None, notes)) + "\n",
        source=counts.source,
        labels_inferred=counts.labels_inferred,
        **more,
    )


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
            raise FileNotFoundError(f"data={str(data)!r}: there is no such file or folder.")
        if path := first([given], names):
            return read(dataset, path, any_shape=allow_stand_in)
        folders = [given]

    cache = cache_folder()
    folders += [folder for folder in (data_folder(), cache) if folder is not None]
    path = first(folders, names) or _downloaded(dataset, cache, folders)
    counts = read(dataset, path, any_shape=allow_stand_in)
    if cache and path == cache / dataset.sources[0]:
        counts = counts._replace(source=dataset.url)
    if cache and path.name not in dataset.prepared and not counts.as_given:
        keep(counts, cache / f"{dataset.name}.npz")
    return counts


def first(folders: Sequence[Path], patterns: Iterable[str]) -> Path | None:
    """The first file that is there; earlier patterns go before earlier folders."""
    found = (
        path for pattern in patterns for folder in folders for path in sorted(folder.glob(pattern))
    )
    return next(found, None)


def data_folder() -> Path | None:
    """TEMPORALNMF_DATA, where the user puts files."""
    chosen = os.environ.get("TEMPORALNMF_DATA")
    return Path(chosen).expanduser() if chosen else None


def cache_folder() -> Path | None:
    """TEMPORALNMF_CACHE, or else the user's cache, which pooch knows."""
    chosen = os.environ.get("TEMPORALNMF_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    try:
        import pooch
    except ImportError:
        return None
    return Path(pooch.os_cache("temporalnmf"))


def download(url: str, path: Path) -> None:
    """Download whole or not at all."""
    import pooch

    pooch.retrieve(url, known_hash=None, fname=path.name, path=path.parent)


def _downloaded(dataset: Dataset, cache: Path | None, looked_in: list[Path]) -> Path:
    """The source file in the cache; or an error that says which file to put where."""
    where = ", ".join(map(str, looked_in)) or "any folder (TEMPORALNMF_DATA is not set)"
    missing = f"{dataset.caller}: {dataset.name}.npy was not found in {where}"
    needs_pooch = ImportError(
        f'{missing}, and a download needs pooch: `pip install "temporalnmf[data]"`. '
        f"{_remedy(dataset, cache, looked_in)}"
    )
    if cache is None:
        raise needs_pooch
    path = cache / dataset.sources[0]
    try:
        download(dataset.url, path)
    except ImportError as error:
        raise needs_pooch from error
    except OSError as error:
        raise FileNotFoundError(
            f"{missing}, and the download from {dataset.url} failed ({error}). "
            f"{_remedy(dataset, cache, looked_in)}"
        ) from error
    return path


def _remedy(dataset: Dataset, cache: Path | None, looked_in: list[Path]) -> str:
    files = " or ".join(dataset.sources)
    text = (
        f"Put {dataset.name}.npy ({dataset.feature}s × {dataset.time}s, {_by(dataset.shape)}) into "
        f"a folder and set TEMPORALNMF_DATA to it, or put the source file {files} "
        f"into {cache or 'that folder'}."
    )
    if stand_in := first(looked_in, dataset.stand_ins):
        text += f" There is a stand-in, {stand_in}: allow_stand_in=True takes it."
    return text


def read(dataset: Dataset, path: Path, *, any_shape: bool) -> Counts:
    """A matrix with its labels beside it, a file that `keep` wrote, or a source to prepare."""
    with reading(path):
        counts = _read(dataset, path)
        _check_form(counts)
    if counts.as_given and counts.values.shape != dataset.shape and not any_shape:
        remedy = "Is it another dataset, or times × features?"
        if dataset.stand_ins:
            remedy = (
                "To take it as a stand-in, pass allow_stand_in=True or the file itself as data."
            )
        raise ValueError(
            f"{path} is {_by(counts.values.shape)}; {dataset.name} is {_by(dataset.shape)} "
            f"({dataset.feature}s × {dataset.time}s). {remedy}"
        )
    return counts if counts.source else counts._replace(source=str(path))


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """One error for all the ways in which a file can be damaged."""
    try:
        yield
    except (FileNotFoundError, PermissionError, MemoryError):
        raise
    except Exception as error:  # libraries have many words for damage, and many kinds of errors
        reason = str(error).rstrip(". ") or type(error).__name__
        raise ValueError(
            f"{path} could not be read: {reason}. It may be damaged, cut short or of another kind: "
            f"put a whole one in its place, or delete it to have it fetched again."
        ) from error


def _read(dataset: Dataset, path: Path) -> Counts:
    if path.suffix == ".npy":
        with path.open("rb") as file:
            return _labelled(dataset, read_npy(file, path.stat().st_size), path)
    if path.suffix == ".npz":
        arrays = read_npz(path)
        if "counts" in arrays:
            return Counts(
                arrays["counts"],
                arrays["features"],
                arrays["times"],
                str(arrays["remarks"]),
                str(arrays["source"]),
            )
        if "format" in arrays:
            return _labelled(dataset, _dense(path), path)
    return dataset.prepare(path)


def _dense(path: Path) -> Array:
    matrix = sparse.load_npz(path)
    if matrix.format in ("csr", "csc", "bsr"):
        refuse_wild_indices(matrix)
    refuse_larger(8 * matrix.shape[0] * matrix.shape[1], "its matrix")
    return matrix.toarray()


def _labelled(dataset: Dataset, values: Array, path: Path) -> Counts:
    """A matrix with the labels that lie beside it, or else made-up ones."""
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
    made_up = np.array([f"{dataset.feature}_{row}" for row in range(rows)])
    return made_up, f"The file does not name its {dataset.feature}s: they are numbered.", False


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
        raise ValueError(
            f"it holds {_by(values.shape)} counts, {counts.features.size} names and "
            f"{counts.times.size} times"
        )
    if values.dtype.kind not in "iuf":
        raise ValueError(f"it holds {values.dtype}, not numbers")
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError("it holds counts that are negative or not finite")


def keep(counts: Counts, path: Path) -> None:
    """Write what was prepared, for `read`."""
    with written_whole(path) as partial:
        np.savez_compressed(
            partial,
            counts=counts.values,
            features=counts.features,
            times=counts.times,
            remarks=counts.remarks,
            source=counts.source,
        )


def _difference(dataset: Dataset, counts: Counts) -> str:
    """How counts differ from the paper's in shape and total, in words; empty if they do not."""
    values, total = counts.values, dataset.total
    if values.shape == dataset.shape and total in (None, values.sum()):
        return ""
    wanted = _by(dataset.shape) + ("" if total is None else f" with a total of {total:,}")
    return (
        f"{dataset.caller}: {counts.source} gives {_by(values.shape)} with a total of "
        f"{values.sum():,}; the paper's is {wanted}."
    )


def lines_of(file: IO[bytes]) -> Iterator[str]:
    """Lines of a source, whatever bytes and separators are in its names."""
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            raise ValueError(f"line {number:,} is longer than {LONGEST_LINE:,} bytes")
        yield line.decode(errors="replace")


def left_out_remark(left_out: Counter[str]) -> str:
    """What was left out of a source, in words; empty if nothing was."""
    listed = ", ".join(f"{number:,} {what}" for what, number in sorted(left_out.items()))
    return f"Left out of the source: {listed}." if listed else ""


def _by(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape))
