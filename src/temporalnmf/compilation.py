"""Telling a waiting user that the kernels are being compiled."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

_KIND = "numba:compile"


class _Announcer(event.Listener):
    def __init__(self) -> None:
        self.told = False

    def on_start(self, event: Any) -> None:
        if not self.told:
            self.told = True
            print(
                "temporalnmf: compiling for this machine; the result is kept on disk, so the next "
                "fit of this kind starts at once.",
                file=sys.stderr,
            )

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def announced(wanted: bool) -> Iterator[None]:
    """Say so, once, if anything is compiled inside the block and somebody may be waiting.

    Somebody may be if it is wanted, in a terminal or in a notebook. Code that comes from the disk
    is not compiled.
    """
    if not (wanted or sys.stderr.isatty() or "ipykernel" in sys.modules):
        yield
        return
    listener = _Announcer()
    event.register(_KIND, listener)
    try:
        yield
    finally:
        event.unregister(_KIND, listener)
