"""Holidays of a country, and events with dates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._typing import Array
from ..messages.errors import Arg, ArgumentError, Text
from ..timeline.clock import Clock
from .covariates import Covariates
from .term import Term

# Most years of a series with holidays.
_MOST_YEARS = 1000


class _Dated(Term):
    """A term with a column for each of several sets of dates.

    A column is the number of days of the set in a step; in steps shorter than a day, whether the
    day of the step is one.
    """

    @abstractmethod
    def _days(self, clock: Clock) -> dict[str, Array]:
        """The dates of each set in the years of a clock, datetime64[D]."""

    def columns(self, clock: Clock, covariates: Covariates | None = None) -> Array:
        self._check_dates("holidays", self.name, clock)
        return np.column_stack([clock.days_in(days) for days in self._days(clock).values()])

    def _check_dates(self, argument: str, value: object, clock: Clock) -> None:
        if not clock.dated:
            remedy = Text("Give X with dates as its index, or put them into periods with {freq=}.")
            raise ArgumentError(argument, value, "needs steps with dates, evenly spaced.", remedy)


@dataclass(frozen=True)
class Holidays(_Dated):
    """Public holidays of a country, by the package `holidays` (extra "holidays").

    Each component has a factor for any holiday, and one more for each holiday that occurs in the
    fit, which is shrunk towards none.

    Parameters
    ----------
    country : str
        ISO code, such as "US"; with a subdivision "US-CA", "DE-BY".
    strength : float or "learn", default="learn"
        Standard deviation of log factors in the prior. Learned for all components together.
    names : tuple of str, default=None
        Holidays in the fit; known from the data.

    Examples
    --------
    >>> Holidays("US")
    Holidays(country='US', strength='learn')
    """

    country: str
    strength: float | str = "learn"
    names: tuple[str, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.country, str) or not self.country.isascii():
            problem = ": expected the code of a country, such as 'US' or 'DE-BY'."
            raise ArgumentError("holidays", self.country, problem)
        self._check_strength()

    @property
    def name(self) -> str:
        return f"holidays {self.country}"

    def readings(self) -> dict[str, Array]:
        """Any holiday; each holiday of the fit, with what all have in common."""
        names = self.names or ()
        columns = np.eye(1 + len(names))
        found = {f"any holiday {self.country}": columns[0]}
        return found | {name: columns[0] + columns[1 + i] for i, name in enumerate(names)}

    def resolve(self, clock: Clock) -> Holidays:
        self._check_dates("holidays", self.country, clock)
        found = self._by_name(clock)
        seen = sorted(name for name, days in found.items() if clock.days_in(days).any())
        if not seen:
            problem = ": none of its holidays is in the series."
            raise ArgumentError("holidays", self.country, problem, "Leave it out.")
        # With a single name, both columns would be the same.
        return replace(self, names=tuple(seen) if len(seen) > 1 else ())

    def check_resolved(self, clock: Clock) -> None:
        if not (isinstance(self.names, tuple) and all(type(n) is str for n in self.names)):
            raise ValueError(f"its holidays have the names {self.names!r:.60}")
        self._check_dates("holidays", self.country, clock)

    def _days(self, clock: Clock) -> dict[str, Array]:
        assert self.names is not None, "resolved"
        found = self._by_name(clock)
        none = np.empty(0, dtype="datetime64[D]")
        every = np.unique(np.concatenate([none, *found.values()]))
        return {"any holiday": every} | {name: found.get(name, none) for name in self.names}

    def _by_name(self, clock: Clock) -> dict[str, Array]:
        """The dates of each holiday in the years of a clock; observed days count, too."""
        first, last = clock.years_around()
        if last - first > _MOST_YEARS:
            problem = f": the series has {last - first} years, too many for holidays."
            raise ArgumentError("holidays", self.country, problem)
        years = range(first, last)
        country, _, part = self.country.partition("-")
        found: dict[str, list[Any]] = {}
        for day, names in (
            _package().country_holidays(*self._checked(country, part), years=years).items()
        ):
            for name in names.split("; "):
                found.setdefault(_plain(name), []).append(day)
        return {name: np.array(sorted(days), "datetime64[D]") for name, days in found.items()}

    def _checked(self, country: str, part: str) -> tuple[str, str | None]:
        """The codes of country and subdivision, if they are known."""
        known = _package().list_supported_countries()
        if country not in known:
            close = country.upper() if country.upper() in known else None
            remedy = f"Did you mean {close!r}?" if close else "Give an ISO code, such as 'DE'."
            problem = "is not a country of the package holidays."
            raise ArgumentError("holidays", self.country, problem, remedy)
        if part and part not in known[country]:
            names = ", ".join(known[country]) or "none"
            problem = f": {country} has the subdivisions {names}."
            raise ArgumentError("holidays", self.country, problem)
        return country, part or None


@dataclass(frozen=True)
class Events(_Dated):
    """Days of events that the user knows, future ones included.

    Parameters
    ----------
    event : str
    days : tuple of str
        ISO dates.
    strength : float or "learn", default="learn"
        Standard deviation of log factors in the prior. Learned for all components together.

    Examples
    --------
    >>> Events("strike", ["2001-03-26", "2001-03-27"])
    Events(event='strike', days=('2001-03-26', '2001-03-27'), strength='learn')
    """

    event: str
    days: tuple[str, ...]
    strength: float | str = "learn"

    def __post_init__(self) -> None:
        try:
            days = np.atleast_1d(np.asarray(self.days)).astype("datetime64[D]")
        except (TypeError, ValueError) as error:
            problem = f": the days of {self.event!r} are not dates ({self.days!r:.60})."
            remedy = "Give ISO dates, such as '2001-03-26'."
            raise ArgumentError("holidays", self.event, problem, remedy) from error
        if not len(days) or np.isnat(days).any():
            problem = f": {self.event!r} has no dates, or missing ones."
            raise ArgumentError("holidays", self.event, problem, "Give at least one date.")
        object.__setattr__(self, "days", tuple(np.datetime_as_string(np.unique(days)).tolist()))
        self._check_strength()

    @property
    def name(self) -> str:
        return self.event

    def readings(self) -> dict[str, Array]:
        return {self.event: np.ones(1)}

    def resolve(self, clock: Clock) -> Events:
        self._check_dates("holidays", self.event, clock)
        if not self.columns(clock).any():
            problem = ": none of its days is in the series, so it cannot be learned."
            raise ArgumentError("holidays", self.event, problem, "Leave it out.")
        return self

    def check_resolved(self, clock: Clock) -> None:
        self._check_dates("holidays", self.event, clock)

    def _days(self, clock: Clock) -> dict[str, Array]:
        return {self.event: np.array(self.days, dtype="datetime64[D]")}


def holiday_terms(given: object) -> tuple[Holidays | Events, ...]:
    """The terms that the user asked for: countries, events by name, or several."""
    if given is None:
        return ()
    if isinstance(given, Holidays | Events):
        return (given,)
    if isinstance(given, str):
        return (Holidays(given),)
    if isinstance(given, Mapping):
        return tuple(Events(str(name), days) for name, days in given.items())
    if isinstance(given, Sequence):
        return tuple(term for one in given for term in holiday_terms(one))
    remedy = "Give a country such as 'US', a dict of events with their dates, or a list of these."
    raise ArgumentError("holidays", given, "is of no known kind.", remedy)


def _plain(name: str) -> str:
    """A holiday and the day on which it is observed have one name."""
    return name.removesuffix(" (observed)").removesuffix(" (estimated)")


def _package() -> Any:
    try:
        import holidays
    except ImportError as error:
        raise ImportError(
            Text(
                "{holidays=} with a country needs the package holidays: pip install "
                "'temporalnmf[holidays]'. Events with dates do not: {events}.",
                events=Arg("holidays", "{'name': dates}"),
            )
        ) from error
    return holidays
