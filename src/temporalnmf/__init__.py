"""Non-negative matrix factorization of things that change over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .estimator import TemporalNMF, load
    from .forecasting.forecast import Forecast

__version__ = "0.1.0"

# Loaded on first use: the estimator imports the compiler, which is slow.
_LAZY = {"TemporalNMF": "estimator", "Forecast": "forecasting.forecast", "load": "estimator"}
_SUBMODULES = (
    "chains", "datasets", "experiments", "likelihoods", "metrics", "plotting", "reading",
    "registry", "report", "selection", "summary", "timeline",
)  # fmt: skip

__all__ = [
    "Forecast", "TemporalNMF", "chains", "datasets", "experiments", "likelihoods", "load",
    "metrics", "plotting", "reading", "registry", "report", "selection", "summary", "timeline",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _LAZY:
        return getattr(import_module(f".{_LAZY[name]}", __name__), name)
    if name in _SUBMODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
