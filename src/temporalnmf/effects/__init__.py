"""What recurs or is known in time: seasons as factors between levels and activations."""

from .season import Season

__all__ = ["Season"]
