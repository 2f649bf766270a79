"""Callbacks that end a fit the hard way."""


class StopError(Exception):
    pass


class StopAt:
    """Raises at some look at the objective."""

    def __init__(self, look):
        self.left = look

    def __call__(self, progress):
        self.left -= 1
        if self.left == 0:
            raise StopError


class StopAfter:
    """Raises from some iteration on, that of draws a sweep."""

    def __init__(self, iteration):
        self.iteration = iteration

    def __call__(self, progress):
        if progress.iteration >= self.iteration:
            raise StopError
