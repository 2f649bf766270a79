"""Checkpoints of fits."""
