"""A user who waits for the compiler is told so, once, and nobody else is."""

import sys

from numba import njit

from temporalnmf.runtime.compilation import announced


def _compile_something():
    @njit
    def double(x):
        return x + x

    return double(1.0)


def test_says_once_that_it_compiles(capsys):
    with announced(True):
        _compile_something()
        _compile_something()
    assert capsys.readouterr().err.count("compiling") == 1


def test_says_so_in_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with announced(False):
        _compile_something()
    assert "compiling" in capsys.readouterr().err


def test_silent_where_nobody_waits_or_nothing_is_compiled(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    with announced(False):
        _compile_something()
    with announced(True):
        pass
    _compile_something()  # after the block
    assert capsys.readouterr().err == ""
