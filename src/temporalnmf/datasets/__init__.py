"""Datasets that come with the package, and the paper's, which are fetched."""

from .flights import load_flights
from .icews import fetch_icews
from .lastfm import fetch_lastfm
from .nips import fetch_nips
from .sotu import load_sotu

__all__ = ["fetch_icews", "fetch_lastfm", "fetch_nips", "load_flights", "load_sotu"]
