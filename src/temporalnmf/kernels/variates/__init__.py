"""Random variates of the posterior's conditional laws, callable from compiled code.

Every function takes a `numpy.random.Generator` first, which compiled code draws from directly: a
stream per block of work is a generator spawned by a `SeedSequence`. Threads must not share one.

Draws are exact up to the rounding of a float64, for all parameters, in a time that does not depend
on them (`crt`: grows with √r). Counts are float64, exact whole numbers.

`_name_rounds` returns the draw and the number of rounds that its rejection took, for tests.
"""

from .crt import crt
from .generalised import gig
from .slices import slice_step
from .splits import allocate, binomial
from .tilted import bessel

__all__ = ["allocate", "bessel", "binomial", "crt", "gig", "slice_step"]
