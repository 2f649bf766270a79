"""Fits on the workers of a Dask cluster, and of data larger than memory."""

from .clients import connected, local

__all__ = ["connected", "local"]
