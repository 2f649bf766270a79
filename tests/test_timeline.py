"""Times of any kind lie on a regular grid, or are said not to."""

import json
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray

from temporalnmf.timeline import Timeline, time_texts, timeline_of
from temporalnmf.timeline.formats import in_style
from temporalnmf.timeline.grid import AS_GIVEN, timeline_of_labels
from temporalnmf.timeline.spacing import MOST_ABSENT

# pandas' name of a spacing, ours, and its words for people.
SPACINGS = {
    "YS": ("year", "yearly"),
    "YE": ("year", "yearly"),
    "YS-APR": ("year", "yearly"),
    "2YS": ("2 years", "every 2 years"),
    "QS": ("quarter", "quarterly"),
    "QE": ("quarter", "quarterly"),
    "MS": ("month", "monthly"),
    "ME": ("month", "monthly"),
    "2MS": ("2 months", "every 2 months"),
    "6ME": ("6 months", "every 6 months"),
    "W": ("week", "weekly"),
    "2W-WED": ("2 weeks", "every 2 weeks"),
    "D": ("day", "daily"),
    "3D": ("3 days", "every 3 days"),
    "h": ("hour", "hourly"),
    "6h": ("6 hours", "every 6 hours"),
    "15min": ("15 minutes", "every 15 minutes"),
    "90s": ("90 seconds", "every 90 seconds"),
    "s": ("second", "every second"),
    "250ms": ("250 milliseconds", "every 250 milliseconds"),
    "us": ("microsecond", "every microsecond"),
}


def thinned(index, seed):
    """Some of the entries in random order, with neighbours in the majority and both ends kept."""
    rng = np.random.default_rng(seed)
    kept = rng.permutation(np.r_[0:6, 7, 8, 10:14, len(index) - 2, len(index) - 1])
    return kept, index[kept]


@pytest.mark.parametrize("freq", SPACINGS)
@pytest.mark.parametrize("start", ["1999-11-07", "2003-12-29 05:30"])
@pytest.mark.parametrize("seed", [0, 1])
def test_grids_are_those_of_pandas(freq, start, seed):
    whole = pd.date_range(start, periods=20, freq=freq)
    index, later = whole[:16], whole[16:]
    kept, given = thinned(index, seed)
    line = timeline_of(given)
    every, rhythm = SPACINGS[freq]
    np.testing.assert_array_equal(line.labels.astype("datetime64[ns]"), index.to_numpy())
    np.testing.assert_array_equal(line.rows, kept)
    np.testing.assert_array_equal(line.absent, [6, 9])
    np.testing.assert_array_equal(line.following(4).astype("datetime64[ns]"), later.to_numpy())
    assert line.following(4).dtype == line.labels.dtype
    assert line.every == every
    first, seventh, tenth, last = (time_texts(line.labels)[n] for n in (0, 6, 9, 15))
    assert line.notes == (
        "sorted by time",
        f"{rhythm}, {first} to {last}",
        f"absent periods: 2 ({seventh}, {tenth})",
    )


@pytest.mark.parametrize("freq", ["MS", "D", "h", "YS"])
def test_every_container_of_dates_gives_the_same_grid(freq):
    index = pd.date_range("2001-01-01", periods=8, freq=freq)[[0, 1, 2, 3, 4, 6, 7]]
    expected = timeline_of(index)
    stamps = [stamp.to_pydatetime() for stamp in index]
    containers = {
        "series": pd.Series(index),
        "objects": index.astype(object),
        "numpy": index.to_numpy(),
        "seconds": index.to_numpy().astype("datetime64[s]"),
        "list": stamps,
        "iso": [stamp.isoformat() for stamp in stamps],
        "spaced": [f" {stamp:%Y-%m-%d %H:%M} " for stamp in stamps],
        "zulu": [f"{stamp.isoformat()}Z" for stamp in stamps],
        "polars": pl.Series(stamps),
        "xarray": xarray.DataArray(index),
        "arrow text": pd.Index([stamp.isoformat() for stamp in stamps], dtype="string"),
        "categories": pd.Categorical([stamp.isoformat() for stamp in stamps]),
        "aware": [stamp.replace(tzinfo=UTC) for stamp in stamps],
    }
    if freq != "h":
        containers["dates"] = [stamp.date() for stamp in stamps]
        containers["compact"] = [int(f"{stamp:%Y%m%d}") for stamp in stamps]
        containers["compact text"] = [f"{stamp:%Y%m%d}" for stamp in stamps]
        containers["slashed ISO"] = [f"{stamp:%Y/%m/%d}" for stamp in stamps]
        containers["points"] = [f"{stamp:%d.%m.%Y}" for stamp in stamps]
    for name, container in containers.items():
        line = timeline_of(container)
        assert line.labels.dtype == expected.labels.dtype, name
        np.testing.assert_array_equal(line.labels, expected.labels, err_msg=name)
        np.testing.assert_array_equal(line.rows, expected.rows, err_msg=name)
        assert line.every == expected.every, name


@pytest.mark.parametrize("freq", ["M", "Q", "W", "D", "Y"])
def test_periods_of_pandas_are_dates_on_a_grid(freq):
    index = pd.period_range("2001-01", periods=9, freq=freq)
    line = timeline_of(index.delete(5))
    np.testing.assert_array_equal(line.labels.astype("datetime64[ns]"), index.to_timestamp())
    assert line.absent.tolist() == [5]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["2001-03", "2001-04"], ["2001-03", "2001-04"]),
        (["2001/3", "2001/4"], ["2001-03", "2001-04"]),
        (["2001Q3", "2001Q4"], ["2001-07", "2001-10"]),
        (["2001-Q3", "2001 q4"], ["2001-07", "2001-10"]),
        (["200111", "200112"], ["2001-11", "2001-12"]),
        (["2001-W07", "2001-W08"], ["2001-02-12", "2001-02-19"]),
        (["31/12/2001", "1/1/2002"], ["2001-12-31", "2002-01-01"]),
        (["12/31/2001", "1/1/2002"], ["2001-12-31", "2002-01-01"]),
        (["30-12-2001 9:05", "30-12-2001 10:05"], ["2001-12-30 09:05", "2001-12-30 10:05"]),
        (["03.04.2001", "04.04.2001"], ["2001-04-03", "2001-04-04"]),
        (["1/1/2001", "2/2/2001"], ["2001-01-01", "2001-02-02"]),
        (["2001", "2002"], ["2001", "2002"]),
        (["1", "2.0"], ["1", "2"]),
        (["0.25", "0.5"], ["0.25", "0.5"]),
        (["2001-01-01T00:00:00.125", "2001-01-01T00:00:00.250"],
         ["2001-01-01 00:00:00.125", "2001-01-01 00:00:00.250"]),
        (["spring", "summer"], ["spring", "summer"]),
        (["Jan 2001", "february 2001"], ["2001-01", "2001-02"]),
        (["Jan-2001", "Apr. 2001"], ["2001-01", "2001-04"]),
        (["9 May 2001", "10-May-2001", "May 11, 2001"], ["2001-05-09", "2001-05-10", "2001-05-11"]),
        (["12/2001", "1/2002"], ["2001-12", "2002-01"]),
        (["12-2001", "01-2002"], ["2001-12", "2002-01"]),
        (["12.2001", "01.2002"], ["2001-12", "2002-01"]),
        (["12.2001", "1.2002"], ["2001-12", "2002-01"]),
        (["01.1900", "01.2000"], ["1900-01", "2000-01"]),
        (["1.1625", "1.1875", "1.2125"], ["1.1625", "1.1875", "1.2125"]),  # numbers
        (["01.2500", "02.2500"], ["1.25", "2.25"]),
        ([1.2019, 2.2019], ["1.2019", "2.2019"]),
        (["März 2019", "Mai 2019"], ["2019-03", "2019-05"]),
        (["1. Oktober 2019", "2. Okt. 2019"], ["2019-10-01", "2019-10-02"]),
        (["Dezember 2019", "Jänner 2020", "Sept 2020"],
         ["2019-12", "2020-01", "2020-02", "2020-03", "2020-04", "2020-05", "2020-06", "2020-07",
          "2020-08", "2020-09"]),
        (["Nov 19", "Dez 19", "Jan 20", "Mrz 20"],
         ["2019-11", "2019-12", "2020-01", "2020-02", "2020-03"]),
        (["Feb-20", "Jan-20", "Dec-19"], ["2019-12", "2020-01", "2020-02"]),
        (["Dec '99", "Jan '00"], ["1999-12", "2000-01"]),
        (["Dec 68", "Jan 69"], ["1968-12", "1969-01"]),
        (["Jan 45", "Feb 45"], ["2045-01", "2045-02"]),  # no day
        (["Feb 30", "Mar 30"], ["2030-02", "2030-03"]),
        (["Jan-01", "Feb-01"], ["Jan-01", "Feb-01"]),  # the year or the day
        (["Jan 19", "Jan 20", "Jan 21"], ["Jan 19", "Jan 20", "Jan 21"]),
        (["Dec 30", "Dec 31", "Jan 01"], ["Dec 30", "Dec 31", "Jan 01"]),
        (["Nov 18", "Dec 19", "Jan 20"], ["Nov 18", "Dec 19", "Jan 20"]),
        (["Term 19", "Term 20"], ["Term 19", "Term 20"]),
        (["02.31.2001", "03.31.2001"], ["02.31.2001", "03.31.2001"]),
        (["term 2001", "May 32, 2001"], ["term 2001", "May 32, 2001"]),
        (["13/2001", "14/2001"], ["13/2001", "14/2001"]),
        ([20011399, 20011401], ["20011399", "20011401"]),
    ],
)  # fmt: skip
def test_texts_are_read_as_dates_numbers_or_names(labels, expected):
    assert time_texts(timeline_of(labels).labels) == expected


def test_months_with_points_are_sorted_as_months():
    line = timeline_of(pd.Index(["01.2019", "02.2019", "12.2018", "04.2019"]))
    assert time_texts(line.labels) == ["2018-12", "2019-01", "2019-02", "2019-03", "2019-04"]
    assert line.rows.tolist() == [1, 2, 0, 4]
    assert line.notes[0] == "times such as '01.2019' are read as months"


def test_short_years_are_noted_or_asked_for():
    told = timeline_of(["Dez 19", "Jan 20", "Mrz 20"]).notes
    assert told[0] == "times such as 'Dez 19' are read as months (2019-12)"
    assert told[-1] == "absent periods: 1 (2020-02)"
    (asked,) = timeline_of(["Jan 19", "Mrz 19"]).notes
    assert asked.endswith("absent periods cannot be seen: write months as 2019-01")
    assert "2019-01" not in timeline_of(["Jan", "Feb"]).notes[0]


@pytest.mark.parametrize(
    "label",
    ["Summe", "TOTAL", "totals", "Gesamt", "sum", "Insgesamt:", "Grand total", "Total 2019", "Σ",
     "Mean", "Overall"],
)  # fmt: skip
def test_totals_among_texts_are_refused(label):
    pattern = f"^X, row 2: the last time is {label!r}, which is not a time step.*Remove it"
    with pytest.raises(ValueError, match=pattern):
        timeline_of(["spring", "summer", label], name="X")


def test_words_that_hold_totals_are_words():
    for last in ("Total war", "Summer", "sumo"):
        assert timeline_of(["spring", last]).labels[-1] == last
    assert timeline_of(["total", "war"]).labels.tolist() == ["total", "war"]  # not the last


def test_numbers_read_as_dates_are_noted():
    assert timeline_of([20010131, 20010201]).notes[0] == "times such as 20010131 are read as dates"
    assert timeline_of([199912, 200001, 200002]).every == "month"


@pytest.mark.parametrize(
    ("labels", "every", "grid", "later"),
    [
        ([1999, 2000, 2002], "step of 1", [1999, 2000, 2001, 2002], [2003, 2004]),
        ([0, 10, 30, 40], "step of 10", [0, 10, 20, 30, 40], [50, 60]),
        ([-3, -1, 1], "step of 2", [-3, -1, 1], [3, 5]),
        ([0.1, 0.2, 0.3, 0.5], "step of 0.1", [0.1, 0.2, 0.3, 0.4, 0.5], [0.6, 0.7]),
        (
            [1 / 3, 2 / 3, 1.0],
            "step of 0.333333333333",
            [1 / 3, 2 / 3, 1.0],
            [1.33333333333, 1.66666666667],
        ),
        ([1e-9, 2e-9, 3e-9], "step of 1e-09", [1e-9, 2e-9, 3e-9], [4e-9, 5e-9]),
        ([2000.0, 2001.0], "step of 1", [2000, 2001], [2002, 2003]),
        ([2**60 + 1, 2**60 + 2], "step of 1", [2**60 + 1, 2**60 + 2], [2**60 + 3, 2**60 + 4]),
    ],
)
def test_numbers_are_times_on_a_grid(labels, every, grid, later):
    line = timeline_of(labels)
    assert line.every == every
    assert line.labels.tolist() == grid
    assert line.following(2).tolist() == later
    np.testing.assert_array_equal(line.labels[line.rows], labels)


def test_numbering_from_zero_has_no_notes():
    for labels in (range(5), pd.RangeIndex(5), np.arange(5)):
        assert timeline_of(labels).notes == ()
        assert timeline_of(labels).every == "step of 1"


def test_days_at_the_end_of_months_stay_there():
    assert time_texts(timeline_of(["2001-01-30", "2001-03-30", "2001-04-30"]).labels) == [
        "2001-01-30", "2001-02-28", "2001-03-30", "2001-04-30",
    ]  # fmt: skip
    quarters = timeline_of(["2001-06-30", "2001-09-30"])
    assert time_texts(quarters.following(2)) == ["2001-12-31", "2002-03-31"]
    evenings = timeline_of(["2001-01-31 18:00", "2001-02-28 18:00"])
    assert time_texts(evenings.following(1)) == ["2001-03-31 18:00"]


@pytest.mark.parametrize(
    "labels",
    [
        [3, 7, 8, 20],  # no difference is there twice
        [1, 3, 5, 6],  # the smallest difference is not the commonest
        [0, 2, 4, 7],  # nor does it divide the others
        ["2001-01-01", "2001-01-03", "2001-01-08", "2001-01-10", "2001-01-15"],
        ["2001-01", "2001-03", "2001-05", "2001-06"],
        [0.0, 0.1, 0.25],
        [0, 1, 2 + 2 + 3 * MOST_ABSENT],  # an even grid would be nearly empty
        ["1800-01-01 00:00:01", "1800-01-01 00:00:02", "2001-01-01"],
        [-1.5e308, 0.0, 1.7e308],  # their difference is infinite
    ],
)
def test_uneven_times_are_taken_as_even_and_noted(labels):
    line = timeline_of(labels[::-1])
    assert line.every == AS_GIVEN
    assert len(line.labels) == len(labels)
    assert line.rows.tolist() == list(range(len(labels)))[::-1]
    assert "times are not evenly spaced" in line.notes[-1]
    assert ("freq" in line.notes[-1]) == isinstance(labels[0], str)
    assert line.following(2).tolist() == ["+1", "+2"]


def test_a_grid_may_have_four_absent_steps_per_given_one():
    line = timeline_of([0, 1, 2 + 3 * MOST_ABSENT])
    assert len(line.labels) == 3 * (1 + MOST_ABSENT)


def test_text_stays_in_its_order():
    line = timeline_of(["winter", "autumn", "spring"])
    assert line.labels.tolist() == ["winter", "autumn", "spring"]
    assert line.rows.tolist() == [0, 1, 2]
    assert line.every == AS_GIVEN
    assert line.notes == (
        "times such as 'winter' are neither numbers nor dates: their order is taken as it stands",
    )
    assert line.following(2).tolist() == ["+1", "+2"]


@pytest.mark.parametrize(
    "labels",
    [["1" * 400, "2" * 400], ["1" * 5000, "2" * 5000], ["1e400", "2e400"], [10**400, 10**401]],
    ids=["long", "longer", "floats", "numbers"],
)
def test_numbers_beyond_all_floats_are_text(labels):
    assert timeline_of(labels).labels.tolist() == list(map(str, labels))


def test_differences_of_large_numbers_do_not_wrap():
    line = timeline_of([1 - 2**63, 0, 2**63 - 1])
    np.testing.assert_array_equal(line.labels, [-(2.0**63), 0.0, 2.0**63])
    assert (np.diff([*line.labels, *line.following(2)]) > 0).all()


def test_coarse_times_in_fine_units_have_their_own_spacing():
    line = timeline_of(np.array([0, 10**12, 3 * 10**12], dtype="datetime64[ps]"))
    assert (line.every, len(line.labels)) == ("second", 4)


def test_a_single_time_is_a_timeline():
    line = timeline_of(["2001-01"])
    assert time_texts(line.labels) == ["2001-01"]
    assert line.notes == ()


@pytest.mark.parametrize(
    ("labels", "pattern"),
    [
        ([2001, 2002, 2001], "'2001' twice, in row 0 and row 2. .*freq=.*feature="),
        (["2001-01", "2001-02", "2001-01-01"], "'2001-01-01' twice, in row 0 and row 2"),
        (pd.to_datetime(["2001-01-01", "2001-01-01"]), "'2001-01-01' twice, in row 0 and row 1"),
        (["a", "b", "a"], "'a' twice, in row 0 and row 2"),
        (["2001-01", "", "2001-03"], "row 1 has no time"),
        (["2001-01", None, "2001-03"], "row 1 has no time"),
        ([1.0, 2.0, np.nan], "row 2 has no time"),
        (pd.to_datetime(["2001-01-01", None]), "row 1 has no time"),
        (pd.Index([1, None], dtype="Int64"), "row 1 has no time"),
        (["01.2019", "02.2019", "12.2019", "2019"],
         r"two kinds: '01.2019' \(row 0\) is a date, '2019' \(row 3\) is a number.*totals"),
        (["1", "1" * 400], "two kinds: '1' .* is a number, '1111.* is text"),
        ([1.0, np.inf], "two kinds: '1.0' .* is a number, 'inf' .* is text"),
        ([2001, "Total"], "two kinds: '2001' .* is a number, 'Total' .* is text"),
        (["2001-01", "2"], r"'2001-01' \(row 0\) is a date, '2' \(row 1\) is a number"),
        (["1/2/2001", "3/2/2001"],
         r"'1/2/2001' .* is 2001-02-01 \(day first\) or 2001-01-02 \(month first\).*2001-12-31"),
        (["13/2/2001", "2/13/2001"], "two forms, .*'13/2/2001'.* year-month-day"),
        (np.array([0, 1], dtype="datetime64[as]"), "finer than a nanosecond"),
        ([], "expected one per row"),
        ([[1, 2]], "expected one per row"),
    ],
)  # fmt: skip
def test_bad_labels_are_refused_with_their_rows(labels, pattern):
    with pytest.raises(ValueError, match=f"(?s)^(the table|Times).*{pattern}"):
        timeline_of(labels)


def test_times_with_zones_become_dates_or_utc():
    berlin = pd.date_range("2001-03-20", periods=10, freq="D", tz="Europe/Berlin")
    line = timeline_of(berlin)  # the clock changes on the 25th: days of 23 hours are days
    assert line.every == "day"
    assert time_texts(line.labels)[0] == "2001-03-20"
    assert line.notes[0] == "times are midnights of a time zone: taken as dates"
    hours = pd.date_range("2001-03-24 12:00", periods=30, freq="h", tz="Europe/Berlin")
    line = timeline_of(hours)
    assert line.every == "hour"
    assert len(line.labels) == 30
    assert time_texts(line.labels)[0] == "2001-03-24 11:00"
    assert line.notes[0] == "time zones: all times are in UTC now"
    east = timezone(timedelta(hours=2))
    mixed = [datetime(2001, 1, 1, 12, tzinfo=east), datetime(2001, 1, 1, 11, tzinfo=UTC)]
    assert time_texts(timeline_of(mixed).labels) == ["2001-01-01 10:00", "2001-01-01 11:00"]


# Periods that are asked for

FREQS = {
    "Y": "YS", "A": "YS", "YS": "YS", "Q": "QS", "QE": "QS", "M": "MS", "ME": "MS", "MS": "MS",
    "D": "D", "3D": "3D", "h": "h", "6h": "6h", "min": "min", "30min": "30min", "2M": "2MS",
    "3Y": "3YS",
}  # fmt: skip


@pytest.mark.parametrize("freq", FREQS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_periods_are_those_of_resample(freq, seed):
    rng = np.random.default_rng(seed)
    fine = freq in ("h", "6h", "min", "30min")
    seconds = rng.integers((3 if fine else 2000) * 86400, size=40)
    stamps = pd.Timestamp("1999-11-07 05:30") + pd.to_timedelta(seconds, unit="s")
    counts = pd.Series(1, stamps).resample(FREQS[freq]).sum()
    line = timeline_of(stamps, freq)
    np.testing.assert_array_equal(line.labels.astype("datetime64[ns]"), counts.index)
    np.testing.assert_array_equal(np.bincount(line.rows, minlength=len(counts)), counts)
    assert (line.labels[line.rows].astype("datetime64[ns]") <= stamps).all()
    later = pd.date_range(counts.index[0], periods=len(counts) + 3, freq=FREQS[freq])[-3:]
    np.testing.assert_array_equal(line.following(3).astype("datetime64[ns]"), later)


@pytest.mark.parametrize("day", pd.date_range("1969-12-20", periods=20).strftime("%Y-%m-%d"))
def test_weeks_start_on_monday(day):
    line = timeline_of([day, day], "W")
    monday = line.labels[0].astype(object)
    assert monday.weekday() == 0
    assert 0 <= (date.fromisoformat(day) - monday).days < 7
    assert line.every == "week"
    assert (line.following(1)[0].astype(object) - monday).days == 7


def test_freq_settles_what_is_ambiguous():
    line = timeline_of(["2001-01", "2001-03", "2001-05", "2001-06"], "M")
    assert line.absent.tolist() == [1, 3]
    assert line.rows.tolist() == [0, 2, 4, 5]
    assert line.notes == ("monthly, 2001-01 to 2001-06", "absent periods: 2 (2001-02, 2001-04)")


def test_rows_that_share_a_step_are_noted():
    line = timeline_of(["2001-01-05", "2001-01-06", "2001-02-01"], "M")
    assert line.notes[0] == "3 times in 2 periods"


DAYS = [f"{day:%Y-%m-%d}" for day in pd.date_range("2019-12-02", "2020-03-15")]


@pytest.mark.parametrize(
    ("labels", "freq", "first", "last"),
    [
        (DAYS[:30], "W", None, "2019-12-30, holds data of 2 of 7 days"),
        (DAYS[:33], "W", None, "2019-12-30, holds data of 5 of 7 days"),
        (DAYS[:34], "W", None, None),  # 6 of 7 days
        (DAYS[4:35], "W", "2019-12-02, holds data of 3 of 7 days", None),
        (DAYS[1:35], "W", None, None),
        (DAYS, "M", None, "2020-03, holds data of 15 of 31 days"),
        (DAYS[9:-20], "M", "2019-12, holds data of 21 of 31 days", None),
        ([f"{day} 23:59" for day in DAYS], "M", None, "2020-03, holds data of 15 of 31 days"),
        (["2019-01-01", "2019-02-11", "2019-03-03"], "M", None,
         "2019-03, holds data of 3 of 31 days"),
        (DAYS[:31], "3D", None, "2020-01-01, holds data of 1 of 3 days"),
        (["2019-01", "2019-02", "2019-05"], "Q", None, "2019-04, holds data of 2 of 3 months"),
        (["2019-01", "2019-02", "2019-06"], "Q", None, None),
        (["2019-03-31", "2019-06-30", "2019-12-31", "2020-09-30"], "Y", None,
         "2020, holds data of 9 of 12 months"),
        (["2019-03-31", "2019-06-30", "2019-12-31", "2020-12-31"], "Y", None, None),
        (DAYS[::7], "M", None, "2020-03, holds data of 15 of 31 days"),  # weeks to the 15th
        (DAYS[::7][:-2], "M", None, None),  # the week from the 24th of February
        (DAYS[6::7], "W", None, None),  # named by their last days
        (DAYS, "D", None, None),
        ([f"{DAYS[0]} 10:{minute}" for minute in range(10, 60)], "h", None, None),
        ([1990, 1993, 1994, 1996], "5", None, "1995, holds data of 2 of 5 times"),
    ],
)  # fmt: skip
def test_ends_that_are_covered_in_part_are_noted_or_left_out(labels, freq, first, last):
    notes = timeline_of(labels, freq).notes
    expected = []
    if first is not None:
        expected.append(f"the first period, {first}: it may be too low")
    if last is not None:
        expected.append(f"the last period, {last}: forecasts from it may be too low")
    assert [note for note in notes if "too low" in note] == expected
    whole = timeline_of(labels, freq, drop_partial=True)
    every = timeline_of(labels, freq)
    start, end = int(first is not None), len(every.labels) - int(last is not None)
    np.testing.assert_array_equal(whole.labels, every.labels[start:end])
    inside = (every.rows >= start) & (every.rows < end)
    np.testing.assert_array_equal(whole.rows, np.where(inside, every.rows - start, -1))
    assert [note.split(",")[0] for note in whole.notes if note.startswith("left out")] == [
        f"left out: the {end} period"
        for end, what in (("first", first), ("last", last))
        if what is not None
    ]


def test_drop_partial_needs_periods_that_are_covered():
    with pytest.raises(ValueError, match=r"drop_partial=True is for periods. Set freq= as well"):
        timeline_of(DAYS, drop_partial=True)
    with pytest.raises(ValueError, match="makes no period that the table covers completely"):
        timeline_of(["2001-12-30", "2002-01-02"], "Y", drop_partial=True)


@pytest.mark.parametrize(("freq", "step"), [("Y", 1), ("5", 5), ("5Y", 5), (10, 10)])
def test_numbers_are_grouped_by_steps(freq, step):
    years = [1990, 1993, 1990, 2004]
    line = timeline_of(years, freq)
    assert line.every == f"step of {step}"
    assert line.labels.tolist() == list(range(1990, 2005, step))
    assert line.rows.tolist() == [(year - 1990) // step for year in years]


@pytest.mark.parametrize(
    ("labels", "freq", "pattern"),
    [
        (["2001-01"], "fortnight", "freq='fortnight' is not known. Use Y, Q, M, W, D, h, min or s"),
        (["2001-01"], "m", "freq='m' is not known"),
        (["2001-01"], "0D", "freq='0D' is not known"),
        (["2001-01"], "-1D", "freq='-1D' is not known"),
        (["2001-01"], "W-WED", "freq='W-WED' is not known"),
        (["2001-01"], "9" * 25 + "D", "freq='9+D' is not known"),
        (["2001-01"], "9" * 5000 + "D", "freq='9+D' is not known"),
        ([1990], "M", "freq='M' does not suit the times of the table, .* numbers such as 1990"),
        ([1990], "0", "freq='0' does not suit"),
        ([1990], "9" * 25, "freq='9+' does not suit"),
        ([0.5], "D", "of another kind, such as '0.5'"),
        (["spring"], "D", "of another kind, such as 'spring'"),
        (["1001-01-01", "2001-01-01"], "s", "31,556,995,201 steps of the table. Choose longer"),
    ],
)
def test_bad_freq_is_refused_with_the_reason(labels, freq, pattern):
    with pytest.raises(ValueError, match=pattern):
        timeline_of(labels, freq)


# Kept and shown


@pytest.mark.parametrize(
    "labels",
    [
        ["2001-01-31", "2001-02-28"], ["2001-01", "2001-04"], ["2001-01-01", "2002-01-01"], [3, 5],
        [0.1, 0.2], ["spring", "été"], ["2001-01-01 10:00", "2001-01-01 10:01"], [5, 1, 9, 77],
        ["2001-01-01T00:00:00.000001", "2001-01-01T00:00:00.000003"], ["2020-W52", "2021-W02"],
    ],
)  # fmt: skip
def test_a_timeline_survives_json(labels):
    line = timeline_of(labels)
    again = Timeline.from_dict(json.loads(json.dumps(line.to_dict())))
    for name in ("labels", "rows"):
        one, other = getattr(line, name), getattr(again, name)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    assert (again.every, again.notes, again.style) == (line.every, line.notes, line.style)
    np.testing.assert_array_equal(again.following(3), line.following(3))


@pytest.mark.parametrize(
    ("labels", "texts"),
    [
        (np.array(["2001"], dtype="datetime64[Y]"), ["2001"]),
        (np.array(["2001-03"], dtype="datetime64[M]"), ["2001-03"]),
        (np.array(["2001-03-01"], dtype="datetime64[ns]"), ["2001-03-01"]),
        (np.array(["2001-03-01T05"], dtype="datetime64[ns]"), ["2001-03-01 05:00"]),
        (np.array(["2001-03-01T05:00:01"], dtype="datetime64[s]"), ["2001-03-01 05:00:01"]),
        ([1965, 1966], ["1965", "1966"]),
        ([0.1 + 0.2, 2.0], ["0.3", "2"]),
        (["+1"], ["+1"]),
        ([], []),
    ],
)
def test_texts_of_times_are_as_short_as_their_unit(labels, texts):
    assert time_texts(labels) == texts


def test_an_index_of_pandas_gives_a_timeline():
    index = pd.date_range("2001", periods=4, freq="MS")[[0, 1, 3]]
    line = timeline_of_labels(index, None)
    assert line.absent.tolist() == [2]
    assert time_texts(line.labels)[2] == "2001-03"
    levels = pd.MultiIndex.from_product([[2001], ["b", "c", "a"]])
    assert timeline_of_labels(levels, None).labels.tolist() == ["2001 b", "2001 c", "2001 a"]
    with pytest.raises(ValueError, match=r"^X has the time '1' twice, in row 0 and row 1"):
        timeline_of_labels(pd.Index([1, 1, 2]), None)


def test_timelines_need_neither_pandas_nor_the_compiler():
    code = (
        "import sys; from temporalnmf.timeline import timeline_of\n"
        "print(timeline_of(['2001-01', '2001-02']).every)\n"
        "print(any(name in sys.modules for name in ('pandas', 'numba', 'scipy')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["month", "False"]


# Labels of other forms


@pytest.mark.parametrize(
    ("labels", "texts", "every"),
    [
        (["Q3 2019", "Q4 2019", "Q1 2020"], ["2019-07", "2019-10", "2020-01"], "quarter"),
        (["q3-2019", "Q4/2019", "Q12020"], ["2019-07", "2019-10", "2020-01"], "quarter"),
        (["2019-W9", "2019-W10", "2019-W11"], ["2019-02-25", "2019-03-04", "2019-03-11"], "week"),
        (["2019W9", "2019W10"], ["2019-02-25", "2019-03-04"], "week"),
        (["30-Dec-18", "31-Dec-18", "1-Jan-19"], ["2018-12-30", "2018-12-31", "2019-01-01"], "day"),
        (["1 Jan 19", "31 Dez. 18"], ["2018-12-31", "2019-01-01"], "day"),
        (["31-Dec-99", "01-Jan-00"], ["1999-12-31", "2000-01-01"], "day"),
        (["31-Dec-68", "01-Jan-69"], ["1968-12-31", "1969-01-01"], "day"),
        (["01-Jan-69", "31-Dec-68"], ["1968-12-31", "1969-01-01"], "day"),
    ],
)
def test_quarters_weeks_and_short_years_are_understood(labels, texts, every):
    line = timeline_of(labels)
    assert time_texts(line.labels) == texts
    assert line.every == every


def test_dates_with_short_years_are_noted():
    line = timeline_of(["30-Dec-18", "31-Dec-18", "1-Jan-19"])
    assert line.notes[0] == "times such as '30-Dec-18' are read as dates (2018-12-30)"
    far = timeline_of(["1-Jan-70", "1-Jan-80", "1-Jan-10"])  # each by itself
    assert time_texts(far.labels)[:2] == ["1970", "1980"]
    assert time_texts(far.labels)[-1] == "2010"


@pytest.mark.parametrize("labels", [["32-Dec-18", "31-Dec-18"], ["29-Feb-19", "1-Mar-19"]])
def test_impossible_days_stay_text(labels):
    assert timeline_of(labels).labels.tolist() == labels


def test_impossible_weeks_stay_text():
    assert timeline_of(["2019-W53", "2019-W54"]).labels.dtype.kind == "U"


def test_the_index_of_a_frame_may_be_weeks():
    index = pd.Index([201952, 202001, 202002], name="week")
    line = timeline_of_labels(index, index.name)
    assert time_texts(line.labels) == ["2019-12-23", "2019-12-30", "2020-01-06"]
    assert line.notes[0] == "times such as 201952 are read as ISO weeks"
    months = pd.Index([202001, 202002])
    assert time_texts(timeline_of_labels(months, "month").labels) == ["2020-01", "2020-02"]


def test_stamps_without_a_zone_beside_others_are_counted():
    stamps = ["2001-01-01T10:00+02:00", "2001-01-01T09:00", "2001-01-01T10:00", "2001-01-01T11:00Z"]
    line = timeline_of(stamps)
    assert time_texts(line.labels) == [f"2001-01-01 {hour:02}:00" for hour in (8, 9, 10, 11)]
    assert line.notes[0] == (
        "time zones: all times are in UTC now; 2 of them had no zone and were taken as UTC"
    )


# Labels come back as they were written


@pytest.mark.parametrize(
    ("labels", "absent", "later"),
    [
        (["2020-W52", "2020-W53", "2021-W01", "2021-W03"], ["2021-W02"], ["2021-W04", "2021-W05"]),
        (["2019-W9", "2019-W10", "2019-W11"], [], ["2019-W12", "2019-W13"]),
        (["2019W51", "2019W52"], [], ["2020W01", "2020W02"]),
        (["2019Q3", "2019Q4", "2020Q2"], ["2020Q1"], ["2020Q3", "2020Q4"]),
        (["2019-Q3", "2019-Q4"], [], ["2020-Q1", "2020-Q2"]),
        (["Q3 2019", "Q4 2019"], [], ["Q1 2020", "Q2 2020"]),
        (["2001/02", "2002/03", "2003/04"], [], ["2004/05", "2005/06"]),
        (["1998/99", "1999/00", "2001/02"], ["2000/01"], ["2002/03", "2003/04"]),
        (["2001-02", "2002-03", "2003-04"], [], ["2004-05", "2005-06"]),  # 13 months apart: no
        (["2012–13", "2013–14"], [], ["2014–15", "2015–16"]),
        (["2001/2002", "2002/2003"], [], ["2003/2004", "2004/2005"]),
        (["FY 2001/02", "FY 2002/03"], [], ["FY 2003/04", "FY 2004/05"]),
        (["2001-02", "2001-03", "2001-05"], ["2001-04"], ["2001-06", "2001-07"]),
        (["2020-01", "2021-01", "2022-01"], [], ["2023-01", "2024-01"]),
        (["2020-01", "2020-02", "2031-05", "2031-06", "2044-11"], [], ["+1", "+2"]),
        (["2020-W01", "2020-W02", "2031-W05", "2031-W06", "2044-W11"], [], ["+1", "+2"]),
    ],
)
def test_periods_keep_the_labels_of_the_user(labels, absent, later):
    for shuffled in (labels, labels[::-1]):
        line = timeline_of(shuffled)
        times = time_texts(line.times)
        assert [times[n] for n in line.rows] == shuffled
        assert [times[n] for n in line.absent] == absent
        assert time_texts(line.following(2)) == later


def test_weeks_are_those_of_the_calendar():
    """Every Monday of 400 years, after which the calendar repeats itself."""
    mondays = np.arange("1999-12-27", "2400-01-10", 7, dtype="datetime64[D]")
    pairs = (day.isocalendar() for day in mondays.tolist())
    expected = [f"{year}-W{week:02}" for year, week, _ in pairs]
    assert in_style(mondays, "%G-W%V").tolist() == expected


def test_quarters_of_pandas_keep_their_labels():
    index = pd.period_range("2019Q3", periods=3, freq="Q")
    line = timeline_of_labels(index, None)
    assert line.times.tolist() == [str(label) for label in index]
    other = pd.period_range("2019Q3", periods=3, freq="Q-MAR")  # begins in October 2018
    assert timeline_of(other).times.dtype.kind == "M"


def test_labels_of_several_styles_come_back_in_one():
    assert timeline_of(["2019W9", "2019-W10", "2019-w11"]).times.tolist() == [
        "2019-W09", "2019-W10", "2019-W11",
    ]  # fmt: skip


@pytest.mark.parametrize("labels", [["2001/02", "2001/03", "2001/04"], ["2003/05"], ["2001/11"]])
def test_slashed_months_are_months(labels):
    line = timeline_of(labels)
    assert line.labels.dtype == "datetime64[M]"
    assert time_texts(line.times) == [label.replace("/", "-") for label in labels]


def test_fiscal_years_are_recognised_and_noted():
    line = timeline_of(["2001/02", "2002/03", "2003/04"])
    assert line.every == "year"
    assert line.notes == (
        "times such as '2001/02' are fiscal years", "yearly, 2001/02 to 2003/04",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "pattern"),
    [
        (["2001/02"], "'2001/02' is the fiscal year 2001 to 2002, or the month 2001-02. Write"),
        (["2001/02", "2002/03"], "fiscal years as 2001/2002, months as 2001-02"),
        (["2001/02", "2002/03", "2003/04", "2004/06"], r"two ways.*'2004/06' \(row 3\) is no"),
        (["2014/16", "2015/16", "2016/17", "2017/18"], r"'2014/16' \(row 0\) is not a fiscal year"),
    ],
)
def test_doubtful_fiscal_years_are_refused(labels, pattern):
    with pytest.raises(ValueError, match=pattern):
        timeline_of(labels)


def test_a_few_labels_take_the_style_of_those_before():
    style = timeline_of(["2001/02", "2002/03", "2003/04"]).style
    assert timeline_of(["2004/05"], style=style).times.tolist() == ["2004/05"]
    mondays = ["2020-01-06", "2020-01-13"]
    assert timeline_of(np.array(mondays, "M8[D]"), style="%G-W%V").times[0] == "2020-W02"
    days = np.array(["2020-01-06", "2020-01-07"], "M8[D]")  # no weeks
    assert timeline_of(days, style="%G-W%V").style == ""


@pytest.mark.parametrize("style", ["%Y", "{0.__class__}", 5, ["%YQ%q"]])
def test_foreign_styles_of_files_are_refused(style):
    with pytest.raises(ValueError, match="style"):
        Timeline.from_dict({**timeline_of(["2020Q1", "2020Q2"]).to_dict(), "style": style})


def test_timelines_of_older_files_are_read_without_a_style():
    stored = timeline_of(["2020Q1", "2020Q2"]).to_dict()
    del stored["style"]
    assert time_texts(Timeline.from_dict(stored).times) == ["2020-01", "2020-04"]
