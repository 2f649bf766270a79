"""States of fits on disk, to resume them from."""
