"""Where steps lie in days, weeks and years, by the calendar."""

from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest

from temporalnmf.effects import Events, Holidays, Season, Trend
from temporalnmf.timeline.grid import timeline_of


def clock(labels):
    return timeline_of(labels).clock


def days(start, n):
    return [date.fromisoformat(start) + timedelta(days=i) for i in range(n)]


def test_days_of_the_week_are_those_of_the_calendar_in_leap_years_too():
    dates = days("1999-12-25", 900)
    found = clock(dates).phases("week") * 7
    np.testing.assert_allclose(found, [d.weekday() for d in dates], atol=1e-9)


def test_missing_days_do_not_shift_the_week():
    dates = [d for d in days("2024-02-01", 60) if d.day not in (3, 4, 17)]
    line = timeline_of(dates)
    found = line.clock.phases("week")[line.rows] * 7
    np.testing.assert_allclose(found, [d.weekday() for d in dates], atol=1e-9)


def test_months_are_twelfths_of_a_year_whatever_their_day():
    for day in (1, 15, 28):
        labels = [f"{y}-{m:02}-{day:02}" for y in (2019, 2020) for m in range(1, 13)]
        np.testing.assert_allclose(clock(labels).phases("year") * 12, [*range(12)] * 2)
    ends = pd.date_range("2019-01-31", periods=24, freq="ME")
    np.testing.assert_allclose(clock(ends).phases("year") * 12, [*range(12)] * 2)


def test_a_day_of_the_year_is_its_share_of_that_year():
    for year, length in ((2023, 365), (2024, 366)):
        found = clock(days(f"{year}-01-01", length)).phases("year")
        np.testing.assert_allclose(found, (np.arange(length) + 0.5) / length)


def test_week_53_is_the_end_of_its_year():
    labels = [f"2020-W{w:02}" for w in range(1, 54)] + ["2021-W01"]
    phases = clock(labels).phases("year")
    assert phases[52] > 0.99 or phases[52] < 0.01
    assert 0.0 < phases[53] < 0.03
    assert clock(labels).length("year") == pytest.approx(52.18, abs=0.01)


def test_hours_are_positions_in_a_day_and_in_a_week():
    line = clock(pd.date_range("2024-01-01 05:00", periods=100, freq="h"))
    np.testing.assert_allclose(line.phases("day") * 24, (5 + np.arange(100)) % 24, atol=1e-9)
    np.testing.assert_allclose(line.phases("week") * 168, 5 + np.arange(100), atol=1e-9)


def test_bins_that_do_not_divide_a_cycle_are_at_their_middle():
    line = clock(days("2001-01-01", 30)[::3])
    middle = (np.arange(10) * 3 + 1.5) % 7  # 2001-01-01 was a Monday
    np.testing.assert_allclose(line.phases("week") * 7, middle, atol=1e-9)
    assert line.length("week") == pytest.approx(7 / 3)


def test_future_steps_continue_the_clock():
    line = timeline_of(days("2024-02-20", 10))
    whole = timeline_of(days("2024-02-20", 30))
    np.testing.assert_allclose(line.clock_after(20).phases("week"), whole.clock.phases("week")[10:])
    season = Season(7).resolve(whole.clock)
    np.testing.assert_allclose(
        season.columns(line.clock_after(20)), season.columns(whole.clock)[10:]
    )


def test_rows_without_labels_are_counted_on():
    line = timeline_of(np.arange(10))
    np.testing.assert_array_equal(line.clock_after(3).positions, [10, 11, 12])


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (days("2001-01-01", 8), [1, 0, 1, 0, 0, 0, 0, 0]),
        (["2000-12", "2001-01", "2001-02"], [0, 2, 0]),
        (["2000-12-31", "2001-01-31", "2001-02-28"], [0, 2, 0]),
        (days("2001-01-01", 16)[::7], [2, 0, 0]),
        (pd.date_range("2001-01-02 22:00", periods=4, freq="h"), [0, 0, 1, 1]),
    ],
)
def test_days_of_events_are_counted_in_steps(labels, expected):
    event = Events("event", ["2001-01-01", "2001-01-03"])
    np.testing.assert_array_equal(event.columns(clock(labels))[:, 0], expected)


def test_holidays_and_the_days_on_which_they_are_observed_have_one_name():
    line = clock(days("2021-01-01", 365))
    term = Holidays("US").resolve(line)
    columns = dict(zip(["any", *term.names], term.columns(line).T, strict=True))
    christmas = np.flatnonzero(columns["Christmas Day"])
    assert [str(line.labels[n]) for n in christmas] == ["2021-12-24", "2021-12-25"]
    assert columns["any"].sum() == sum(columns[name].sum() for name in term.names) - 0.0


def test_a_future_holiday_without_a_precedent_is_any_holiday():
    term = Holidays("US").resolve(clock(days("2021-01-01", 100)))
    ahead = term.columns(clock(days("2021-06-30", 10)))
    fourth = 4  # 2021-07-04, a Sunday; observed on Monday
    np.testing.assert_array_equal(ahead[:, 0], np.isin(np.arange(10), [fourth, fourth + 1]))
    np.testing.assert_array_equal(ahead[:, 1:], 0.0)


@pytest.mark.parametrize("damping", [0.5, 0.8, 1.0])
def test_a_trend_accumulates_growth_that_is_damped_on_both_sides_of_the_end(damping):
    whole = clock(days("2001-01-01", 30))
    trend = Trend(damping).resolve(whole.take(20))
    found = trend.columns(whole)[:, 0]
    assert trend.accumulated(np.zeros(1)) == 0.0
    if damping < 1.0:  # 1 in the distant past
        assert found[0] == pytest.approx(damping**19 / (1.0 - damping))
    else:
        assert found[:20].mean() == pytest.approx(0.0)
    for s in range(10):  # between s + 1 and s steps before the end; in the s-th step after it
        assert found[19 - s] - found[18 - s] == pytest.approx(damping**s)
        assert found[20 + s] - found[19 + s] == pytest.approx(damping ** (s + 1))
