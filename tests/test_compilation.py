"""A user who waits for the compiler is told so, once, and nobody else is."""

import os
import subprocess
import sys

import pytest
from numba import njit

from temporalnmf import registry
from temporalnmf.runtime.compilation import announced


def _compile_something():
    @njit
    def double(x):
        return x + x

    return double(1.0)


def test_compilation_is_announced_once(capsys):
    with announced(True):
        _compile_something()
        _compile_something()
    assert capsys.readouterr().err.count("compiling") == 1


def test_compilation_is_announced_in_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with announced(False):
        _compile_something()
    assert "compiling" in capsys.readouterr().err


def test_compilation_is_not_announced_where_nobody_waits_or_nothing_is_compiled(
    capsys, monkeypatch
):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    with announced(False):
        _compile_something()
    with announced(True):
        pass
    _compile_something()  # after the block
    assert capsys.readouterr().err == ""


# Every kernel of a likelihood, unrolled and not: how often the compiler was called.
_PASSES = """
import sys
import numpy as np
from numba.core import event
from scipy import sparse
from temporalnmf import registry
from temporalnmf.observations import observe

compiled = event.RecordingListener()
event.register("numba:compile", compiled)
likelihood = registry.create(registry.LIKELIHOODS, sys.argv[1], "likelihood")
X = np.arange(1.0, 25.0).reshape(6, 4)
kinds = [X, sparse.csr_array(X)] if likelihood.takes_sparse else [X]
for data in kinds:
    observations = observe(data, np.ones((6, 1)), np.ones(6), likelihood)
    for K in (2, 9):
        W = np.full((4, K), 0.25, order=observations.order)
        observations.sums(W, np.ones((K, 6)), "wh")
        observations.value(W, np.ones((K, 6)))
print(len(compiled.buffer))
"""


@pytest.mark.long
@pytest.mark.parametrize("likelihood", registry.LIKELIHOODS)
def test_a_second_process_compiles_nothing(likelihood, tmp_path):
    """Formulas of a likelihood are globals of its kernels, which the cache on disk can hold."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", _PASSES, likelihood]
    run = {"env": environment, "check": True, "capture_output": True, "text": True}
    first, second = (int(subprocess.run(command, **run).stdout) for _ in range(2))
    assert first > 0
    assert second == 0
