"""Time to import the library, to show the help and to fit for the first time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from speed.timing import Options, alternate, seconds_of

IMPORT = """
import json, sys, time
started = time.perf_counter()
{statement}
print(json.dumps([time.perf_counter() - started, "numba" in sys.modules]))
"""

FIT = """
import json, time
import numpy as np
from temporalnmf import TemporalNMF
X = np.random.default_rng(0).poisson(3.0, size=(60, 40)).astype(float)
started = time.perf_counter()
TemporalNMF(3, chain="{chain}", random_state=0).fit(X)
print(json.dumps(time.perf_counter() - started))
"""

# The package itself is lazy; most users import the class.
IMPORTS = ("import sklearn.base", "import temporalnmf", "from temporalnmf import TemporalNMF")

HELP = [sys.executable, "-m", "temporalnmf", "--help"]


def run(options: Options) -> list[dict[str, Any]]:
    runs = {what: lambda what=what: _fresh(IMPORT.format(statement=what))[0] for what in IMPORTS}
    runs["temporalnmf --help"] = lambda: seconds_of(
        lambda: subprocess.run(HELP, check=True, capture_output=True)
    )
    measured = alternate(runs, options.repetitions)
    records: list[dict[str, Any]] = [{"what": w, "seconds": s} for w, s in measured.items()]
    for record in records[: len(IMPORTS)]:
        record["loads_numba"] = _fresh(IMPORT.format(statement=record["what"]))[1]
    for chain in () if options.quick else ("rate", "bgar"):
        with tempfile.TemporaryDirectory() as cache:
            for what in ("first fit, nothing compiled yet", "first fit of a later process"):
                seconds = _fresh(FIT.format(chain=chain), NUMBA_CACHE_DIR=cache)
                records.append({"what": what, "chain": chain, "seconds": [seconds]})
    return records


def _fresh(code: str, **environment: str) -> Any:
    """What a process of its own prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment},
        check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return json.loads(done.stdout)
