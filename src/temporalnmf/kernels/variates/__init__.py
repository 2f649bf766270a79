"""Random variates of the posterior's conditional distributions, callable from compiled code.

The first argument is a `numpy.random.Generator`, which threads must not share: each range has its
own, spawned by a `SeedSequence`.

Draws are exact up to rounding, for all parameters, in a time that does not depend on them (for
`crt` it grows with √r). Counts are whole numbers as float64.

`name_rounds` returns the draw and its number of rejection rounds, for tests.
"""

from .crt import crt, few_crt
from .generalised import gig
from .slices import slice_step
from .splits import allocate, binomial
from .tilted import bessel

__all__ = ["allocate", "bessel", "binomial", "crt", "few_crt", "gig", "slice_step"]
