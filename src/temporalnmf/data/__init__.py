"""Series of checked data."""
