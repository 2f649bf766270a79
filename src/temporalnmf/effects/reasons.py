"""Why a model has its seasons and its trend: codes with facts, and their words."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from ..messages.formatting import percent

Code = Literal[
    "given",
    "not_wanted",
    "tried",
    "no_dates",
    "no_cycle",
    "too_short",
    "few_steps",
    "not_local",
    "unknown",
]

_WORDS: dict[Code, str] = {
    "given": "as given",
    "not_wanted": "not wanted",
    "no_dates": "times are not dates",
    "no_cycle": "steps are as long as the longest cycle of the calendar",
    "too_short": "fewer than two cycles of any season",
    "few_steps": "too few observed steps to hold some out",
    "not_local": "data that are not in memory are not searched",
    "unknown": "of an earlier version",
}


class Trial(NamedTuple):
    """A term that was tried; by how much it lowers errors, None if it was left out."""

    name: str
    lower: float | None

    def __str__(self) -> str:
        if self.lower is None:
            return f"no {self.name}: it does not predict held-out steps better"
        return f"{self.name}: errors of held-out steps are {percent(self.lower)} lower"


class Reason(NamedTuple):
    """Why a model has some terms, or none."""

    code: Code
    trials: tuple[Trial, ...] = ()

    def __str__(self) -> str:
        return "; ".join(map(str, self.trials)) if self.code == "tried" else _WORDS[self.code]

    @property
    def left_out(self) -> tuple[str, ...]:
        """The names of terms that were tried and left out."""
        return tuple(trial.name for trial in self.trials if trial.lower is None)


def reason_of(stored: object) -> Reason:
    """A reason from JSON; raises if it is none."""
    if stored is None:
        return Reason("unknown")
    wrong = ValueError(f"one of its reasons is {stored!r:.60}")
    if not (isinstance(stored, list) and len(stored) == 2 and isinstance(stored[1], list)):
        raise wrong
    code, trials = stored
    if code not in get_args(Code):
        raise wrong
    for trial in trials:
        pair = isinstance(trial, list) and len(trial) == 2 and isinstance(trial[0], str)
        if not pair or not (trial[1] is None or isinstance(trial[1], float)):
            raise wrong
    return Reason(code, tuple(Trial(name, lower) for name, lower in trials))
