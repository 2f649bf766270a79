"""While kernels are compiled, a waiting user is informed and Ctrl-C is deferred."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import ClassVar

from numba.core import event

from .interrupts import between_sweeps

_KIND = "numba:compile"


class _Announcer(event.Listener):
    """Announces compilation in one fit. Numba calls the listeners of all fits, under its lock."""

    active: ClassVar[set[_Announcer]] = set()

    def __init__(self) -> None:
        self.announced = False

    def on_start(self, event: event.Event) -> None:
        # Concurrent fits wait for the same compiler: one message is enough for all of them.
        announced = any(announcer.announced for announcer in tuple(self.active))
        self.announced = True
        if not announced:
            print(
                "temporalnmf: compiling for this machine; the result is kept on disk, so the next "
                "fit of this kind starts at once.",
                file=sys.stderr,
            )

    def on_end(self, event: event.Event) -> None:
        pass


class _Guard(event.Listener):
    """Defers Ctrl-C while the main thread compiles a function and those that it calls.

    The compiler calls back into Python and swallows exceptions there: Numba would raise another
    error, or none.
    """

    def __init__(self) -> None:
        self._depth, self._held = 0, ExitStack()

    def on_start(self, event: event.Event) -> None:
        if threading.current_thread() is threading.main_thread():
            self._depth += 1
            if self._depth == 1:
                self._held.enter_context(between_sweeps())

    def on_end(self, event: event.Event) -> None:
        if threading.current_thread() is threading.main_thread():
            self._depth -= 1
            if self._depth == 0:
                self._held.close()  # raises a deferred Ctrl-C


@contextmanager
def guarded() -> Iterator[None]:
    """A block in which a signal during compilation is raised after it."""
    main = threading.current_thread() is threading.main_thread()
    with event.install_listener(_KIND, _Guard()) if main else nullcontext():
        yield


@contextmanager
def announced(wanted: bool) -> Iterator[None]:
    """Print a message if anything is compiled in the block and a user may be waiting.

    That is if it is `wanted`, in a terminal or in a notebook. Cached code is not compiled.
    """
    # Services may have no stderr, or have closed it.
    terminal = not getattr(sys.stderr, "closed", True) and sys.stderr.isatty()
    if not (wanted or terminal or "ipykernel" in sys.modules):
        yield
        return
    listener = _Announcer()
    _Announcer.active.add(listener)
    try:
        with event.install_listener(_KIND, listener):
            yield
    finally:
        _Announcer.active.remove(listener)
