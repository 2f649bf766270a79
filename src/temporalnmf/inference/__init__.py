"""Posterior modes: starts, fits, gaps, and the curvature around them."""
