"""The paper's comparison of chains, on any data."""

from .protocol import MODELS, PROTOCOLS, Protocol, Task, our_protocol, paper_protocol
from .runner import run
from .tables import chosen, summary, write_tables

__all__ = [
    "MODELS",
    "PROTOCOLS",
    "Protocol",
    "Task",
    "chosen",
    "our_protocol",
    "paper_protocol",
    "run",
    "summary",
    "write_tables",
]
