"""Datasets that come with the package."""

from .sotu import load_sotu

__all__ = ["load_sotu"]
