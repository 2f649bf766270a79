"""The paper's comparison of chains, on any data."""

from .protocol import MODELS, PROTOCOLS, Protocol, Task, our_protocol, paper_protocol
from .runner import run
from .summaries import chosen, comparisons, summary
from .tables import write_tables

__all__ = [
    "MODELS",
    "PROTOCOLS",
    "Protocol",
    "Task",
    "chosen",
    "comparisons",
    "our_protocol",
    "paper_protocol",
    "run",
    "summary",
    "write_tables",
]
