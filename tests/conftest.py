"""Fixtures that tests of many modules share."""

import pytest

import clusters
from cases import PLACES


def pytest_sessionfinish():
    clusters.at_end.close()


@pytest.fixture(params=PLACES)
def place(request):
    """Where the data of a problem are: in memory, cut into blocks, or on the workers of a cluster.

    Elsewhere than in memory a call takes longer, and tests do fewer of them.
    """
    return request.param
