"""What `make test` runs of a product of cases, and what it says of the rest."""

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from cases import all_cases
from covering import PLACES, covering, parts


def covered(rows):
    return set().union(*map(parts, rows))


def test_every_pair_of_values_is_covered_by_few_cases():
    rows = [(*case.factors(), place) for case, place in product(all_cases(), PLACES)]
    chosen = [rows[i] for i in covering(rows)]
    assert covered(chosen) == covered(rows)
    assert len(set(chosen)) == len(chosen) < len(rows) // 15
    for column, values in enumerate(zip(*rows, strict=True)):
        assert {row[column] for row in chosen} == set(values)


@pytest.mark.parametrize(
    ("sizes", "fewest", "most"),
    [((4,), 4, 4), ((3, 5), 15, 15), ((3, 3, 3, 3), 9, 12), ((2,) * 9, 6, 10)],
)
def test_covering_arrays_are_small(sizes, fewest, most):
    """At least the product of the two largest columns; 6 rows are the least for nine of two."""
    rows = list(product(*map(range, sizes)))
    chosen = [rows[i] for i in covering(rows)]
    assert covered(chosen) == covered(rows)
    assert fewest <= len(chosen) <= most


def test_pairs_that_no_row_has_are_not_asked_for():
    rows = [(1, "a"), (2, "b"), (1, "a")]
    assert covering(rows) == [0, 1]


def test_rows_of_strength_one_have_every_value():
    rows = list(product(range(3), range(5), range(2)))
    chosen = [rows[i] for i in covering(rows, strength=1)]
    assert len(chosen) == 5
    assert [len(set(column)) for column in zip(*chosen, strict=True)] == [3, 5, 2]


SOME = """
import pytest

@pytest.mark.pairwise
@pytest.mark.parametrize("a", range(3))
@pytest.mark.parametrize("b", range(3))
@pytest.mark.parametrize("c", range(3))
def test_product(a, b, c):
    pass

@pytest.mark.quick("3", "5")
@pytest.mark.parametrize("a", range(9))
def test_of_a_list(a):
    assert a in (3, 5)

@pytest.mark.long
def test_of_an_hour():
    pass
"""


def run(tests, folder, processes):
    """What `make test` says of some tests."""
    (folder / "test_some.py").write_text(tests)
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    (folder / "pyproject.toml").write_text(text.replace('["tests"]', '["."]'))
    command = [sys.executable, "-m", "pytest", "-n", str(processes), "-m", "not long"]
    plugin = ["-p", "conftest", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    return subprocess.run(
        [*command, *plugin], cwd=folder, env=environment, capture_output=True, text=True
    )


@pytest.mark.parametrize("processes", [0, pytest.param(2, marks=pytest.mark.long)])
def test_tests_that_are_left_out_are_counted_in_the_last_lines(processes, tmp_path):
    done = run(SOME, tmp_path, processes)
    told, count = done.stdout.splitlines()[-2:]
    assert "12 passed" in count, done.stdout
    assert told == "Left out: 25 long tests, which `make test-long` runs with all others."


def test_quick_names_that_are_no_cases_are_refused(tmp_path):
    done = run(SOME.replace('"3", "5"', '"3", "9"'), tmp_path, 0)
    assert done.returncode == 4
    assert "test_of_a_list: quick names {'9'}, which are no cases of it" in done.stderr
