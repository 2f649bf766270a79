"""Columns of long tables as numbers, with a Python object per label, never per row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from .._typing import Array
from ..messages.errors import ArgumentError, Text
from ..timeline.dates import Notes
from . import cells
from .libraries import pa, pc

Name = str | None  # of a column, None if there is none
MANY = 100_000  # with more labels, dates are parsed by Arrow, which is faster


class Columns(NamedTuple):
    """Names of the columns of a long table."""

    time: str
    feature: str
    value: str | None = None
    exposure: str | None = None

    @classmethod
    def of(
        cls, time: Name, feature: Name, value: Name, exposure: Name, transpose: bool = False
    ) -> Columns | None:
        """None if the arguments are those of a wide table."""
        if transpose and (time is not None or feature is not None):
            problem = Text("says that columns are times, and {time=} and {feature=} name columns.")
            raise ArgumentError("transpose", True, problem, "Leave out one of them.")
        if feature is None:
            if value is not None:
                remedy = Text("Name the column of features with {feature=} too.")
                raise ArgumentError("value", value, "is for long tables.", remedy)
            return None
        if time is None:
            remedy = Text("Name the column of times with {time=} too.")
            raise ArgumentError("feature", feature, "is for long tables.", remedy)
        columns = cls(time, feature, value, exposure)
        if len(set(columns.names)) < len(columns.names):
            twice = "{time=}, {feature=}, {value=} and {exposure=} name one column twice: {names}."
            raise ValueError(Text(f"{twice} Give each its own.", names=", ".join(columns.names)))
        return columns

    @property
    def names(self) -> list[str]:
        return [name for name in self if name is not None]

    def places(self, names: list[str], file: str) -> list[int]:
        """The positions of the columns among all names of a file."""
        return [
            cells.place_of(name, argument, names, file)
            for argument, name in self._asdict().items()
            if name is not None
        ]


class Source(NamedTuple):
    """Blocks of rows, and how errors refer to them.

    A block has an Arrow array for each of `Columns.names`. `place` maps the index of a row to its
    place in the file. With `decimal_commas`, commas in numbers may be decimal commas; `thousands`
    is the character that may separate thousands. `notes` are complete once all blocks are read.
    """

    name: str
    blocks: Iterable[list[pa.Array]]
    place: Callable[[int], str]
    decimal_commas: bool = False
    thousands: str = ""
    notes: Sequence[str] = ()


class Labels:
    """Assigns codes to labels, in the order in which they occur."""

    def __init__(self, missing: tuple[str, ...], name: str) -> None:
        self.missing, self.name = missing, name
        self._known: pa.Array | None = None

    @property
    def known(self) -> pa.Array:
        """The labels read so far."""
        assert self._known is not None, "a block has been read"
        return self._known

    def __len__(self) -> int:
        return 0 if self._known is None else len(self._known)

    def codes(self, column: pa.Array) -> Array:
        """The codes of the labels of a block, -1 for missing ones."""
        try:
            return self._codes(encoded(column))
        except pa.ArrowException as error:
            raise unknown_type(self.name, column.type) from error

    def _codes(self, column: pa.DictionaryArray) -> Array:
        labels = self._cleaned(column.dictionary)
        new = pc.unique(labels.drop_null())
        if self._known is not None:
            kind = self.known.type
            if new.type != kind:
                new, labels = new.cast(kind), labels.cast(kind)
            new = new.filter(pc.invert(pc.is_in(new, value_set=self.known)))
            new = pa.concat_arrays([self.known, new])
        self._known = new
        numbers = to_numpy(pc.index_in(labels, value_set=self.known).fill_null(-1))
        # The last one is for rows without a label.
        numbers = np.append(numbers, np.int32(-1))
        return numbers[to_numpy(column.indices.cast(pa.int64()).fill_null(len(numbers) - 1))]

    def _cleaned(self, labels: pa.Array) -> pa.Array:
        """Labels without surrounding whitespace; missing ones are null."""
        if pa.types.is_floating(labels.type):
            return pc.if_else(pc.is_nan(labels), None, labels)
        if not is_string(labels.type):
            return labels
        labels = pc.utf8_trim_whitespace(labels.cast(pa.large_string()))
        cells.refuse_long_labels(self.name, pc.max(pc.utf8_length(labels)).as_py() or 0)
        # Arrow loses the \n of \r\n if a block ends between them.
        labels = pc.replace_substring(pc.replace_substring(labels, "\r\n", "\n"), "\r", "\n")
        missing = pc.is_in(pc.utf8_lower(labels), value_set=pa.array(self.missing, labels.type))
        return pc.if_else(missing, pa.scalar(None, labels.type), labels)

    def to_numpy(self) -> Array:
        """All labels; text and dates with a time zone as objects."""
        known = self.known
        text = is_string(known.type)
        if text and len(known) > MANY:
            try:
                return to_numpy(known.cast(pa.timestamp("us")))
            except pa.ArrowInvalid:
                pass
        try:
            if not text and not getattr(known.type, "tz", None):
                return to_numpy(known)
            found = np.empty(len(known), dtype=object)
            found[:] = known.to_pylist()
            return found
        except (pa.ArrowException, ValueError, OverflowError) as error:  # such as the year 300000
            raise unknown_type(self.name, known.type) from error


class Values:
    """Reads blocks of values. A comma or point has the same meaning in all of them."""

    def __init__(self, source: Source, name: str | None) -> None:
        self.source = source._replace(blocks=())  # does not keep the file open
        self.column = f"column {name!r}"
        self.points = source.thousands == "."  # points separate thousands
        self.comma = self.point = self.grouped = False  # seen so far
        self.doubt = cells.Points()
        self.hundreds = False  # some whole number is at least 100

    def read(self, column: pa.Array, first: int) -> Array:
        """float64, NaN if missing; `first` is the row at which the block starts."""
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        if not (pa.types.is_dictionary(column.type) or is_string(column.type)):
            values = self._numbers(column)
        else:
            column = encoded(column)
            places = to_numpy(column.indices.cast(pa.int64()).fill_null(-1))
            values = np.append(self._texts(column.dictionary, places, first), np.nan)[places]
        for wrong, what in ((np.isinf(values), "is infinite"), (values < 0, "is negative")):
            if wrong.any():
                n = int(np.argmax(wrong))
                remedy = "The model is for finite, non-negative data: correct it"
                raise self._refusal(first + n, f"{values[n]:g} {what}", remedy)
        return values

    def _numbers(self, column: pa.Array) -> Array:
        try:
            return to_numpy(column.cast(pa.float64(), safe=False).fill_null(np.nan))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            found = f"{self.source.name}: {self.column} holds {column.type}"
            raise ValueError(f"{found}, not numbers. Name a column of numbers.") from error

    def _texts(self, texts: pa.Array, places: Array, first: int) -> Array:
        if not len(texts):
            return np.empty(0)
        texts = pc.utf8_trim_whitespace(texts.cast(pa.large_string()))
        plain = self._with_points(texts) if self.source.decimal_commas else texts
        missing = pc.is_in(pc.utf8_lower(texts), value_set=pa.array(cells.MISSING, texts.type))
        try:
            return to_numpy(pc.if_else(missing, "nan", plain).cast(pa.float64()).fill_null(np.nan))
        except pa.ArrowInvalid:
            return self._one_by_one(texts.to_pylist(), places, first)

    def _with_points(self, texts: pa.Array) -> pa.Array:
        """Decimal commas as points. If there are any, no block may have decimal points."""
        self.comma |= pc.any(pc.match_substring(texts, ",")).as_py()
        points = pc.match_substring(texts, ".")
        if self.points:
            grouped = pc.match_substring_regex(texts, r"^[+-]?\d{1,3}(\.\d{3})+(,\d*)?$")
            self.grouped |= pc.any(grouped).as_py()
            texts = pc.if_else(grouped, pc.replace_substring(texts, ".", ""), texts)
            points = pc.match_substring(texts, ".")
        self.point |= pc.any(pc.and_(points, pc.not_equal(texts, "."))).as_py()
        if self.point and (self.comma or self.points):
            found = "has numbers with decimal commas and others with decimal points"
            raise ValueError(f"{self.source.name} {found} in {self.column}. Write all in one way.")
        self._doubt_points(texts, points)
        return pc.replace_substring(texts, ",", ".")

    def _doubt_points(self, texts: pa.Array, points: pa.Array) -> None:
        """Record whether points may separate thousands."""
        alike = pc.match_substring_regex(texts, cells.Points.AS_THOUSANDS)
        examples = texts.filter(alike)
        self.doubt.example = self.doubt.example or (str(examples[0]) if len(examples) else "")
        others = pc.and_(pc.and_not(points, alike), pc.not_equal(texts, "."))
        self.doubt.decimal |= self.comma or pc.any(others).as_py()
        self.hundreds |= pc.any(pc.match_substring_regex(texts, cells.Points.AT_LEAST_100)).as_py()

    def settle(self) -> None:
        """Refuse ambiguous numbers, once all have been read."""
        if self.doubt.doubtful and self.hundreds:
            raise self.doubt.refusal(f"{self.source.name}, {self.column}")

    def _one_by_one(self, texts: list[str], places: Array, first: int) -> Array:
        """Read cells that Arrow cannot: 1,234, +5, and those that are not numbers."""
        comma, thousands = self.comma or self.points, bool(self.source.thousands)
        values = np.empty(len(texts))
        for k, text in enumerate(texts):
            value = cells.number_in(text, comma, thousands)
            if value is None:
                n = first + int(np.argmax(places == k))
                raise self._refusal(n, f"{text!r:.80} is not a number", "Write a plain number")
            self.grouped |= thousands and cells.has_thousands(text, comma)
            values[k] = value
        return values

    def _refusal(self, n: int, what: str, remedy: str) -> ValueError:
        place = f"{self.source.name}, {self.source.place(n)}, {self.column}"
        return ValueError(f"{place}: {what}. {remedy}, or leave the cell empty if it is missing.")

    def notes(self) -> Notes:
        commas = ("commas are decimal commas",) if self.comma else ()
        grouped = (cells.about_thousands(self.points),) if self.grouped else ()
        return (*commas, *grouped, *self.doubt.about())


def unknown_type(name: str, kind: pa.DataType) -> ValueError:
    found = f"{name} holds {kind!s:.80}, which is neither text nor numbers nor dates"
    return ValueError(f"{found}. Name another column, or write it as text.")


def encoded(column: pa.Array) -> pa.DictionaryArray:
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


def to_numpy(array: pa.Array) -> Array:
    return np.asarray(array.to_numpy(zero_copy_only=False))


def is_string(kind: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(kind) for test in tests)
