"""What `make test` runs of a product of cases, and what it says of the rest."""

from itertools import product

import pytest

from cases import PLACES, all_cases
from covering import covering, pairs


def covered(rows):
    return set().union(*map(pairs, rows))


def test_every_pair_of_every_case_is_covered_by_few():
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
