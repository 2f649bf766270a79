"""A fitted model as one HTML file, to read, to print and to send. Needs the extra "report"."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..runtime.files import refuse_overwriting, written_whole
from .content import report_content

if TYPE_CHECKING:
    from ..estimator import TemporalNMF

__all__ = ["report_content", "write_report"]


def write_report(
    model: TemporalNMF,
    path: Any,
    *,
    question: str | None = None,
    command: str | Sequence[str] | None = None,
    steps: int | None = None,
    forecast: Any = None,
    hold_out: dict[str, Any] | None = None,
    n_features: int = 12,
    source: Any = None,
    overwrite: bool = False,
) -> Path:
    """Write what a model found as one HTML file that needs nothing else, not even a network.

    Parameters
    ----------
    model : TemporalNMF
        Fitted.
    path : str or Path
        Where to; folders that are missing are made.
    question : str, default=None
        What was asked, in words; made from the data if not given.
    command : str or sequence of str, default=None
        The command that led here, shown as it is; the call in Python if not given.
    steps : int, default=None
        How many steps to forecast, 0 for none; a twentieth of the series, from three to twelve,
        if not given.
    forecast : Forecast, default=None
        A forecast that was made already, instead of `steps`.
    hold_out : dict, default=None
        What was found on data that were held out: nominal "coverage", how many entries were
        "inside" of how many in "total", the ends "low" and "high" of the 95 % confidence
        interval of the share that was found, and "words".
    n_features : int, default=12
        Features shown per component.
    source : str or Path, default=None
        The file of the data: its name is shown, and its checksum if it is there.
    overwrite : bool, default=False
        Whether a file that exists may be replaced.

    Returns
    -------
    Path
        Of the report.

    Examples
    --------
    >>> import tempfile
    >>> from temporalnmf import TemporalNMF
    >>> from temporalnmf.datasets import load_sotu
    >>> from temporalnmf.report import write_report
    >>> model = TemporalNMF(6, random_state=0).fit(load_sotu(as_frame=True).data)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(model, f"{folder}/report.html", steps=5).name
    'report.html'
    """
    target = Path(path)
    _check(target, steps, forecast, n_features, hold_out, overwrite)
    text = _rendered(
        report_content(
            model,
            question=question,
            command=command,
            steps=steps,
            forecast=forecast,
            hold_out=hold_out,
            n_features=n_features,
            source=source,
        )
    )
    with written_whole(target) as partial:
        partial.write_text(text, encoding="utf-8", errors="replace", newline="\n")
    return target


def _check(
    target: Path, steps: Any, forecast: Any, n_features: Any, hold_out: Any, overwrite: bool
) -> None:
    """Refuse what cannot work before anything is computed."""
    refuse_overwriting(target, overwrite)
    if steps is not None and forecast is not None:
        raise ValueError(f"steps={steps!r} and forecast= were both given: give one of them.")
    for name, value, least in (("steps", steps, 0), ("n_features", n_features, 1)):
        if value is not None and (isinstance(value, bool) or int(value) != value or value < least):
            raise ValueError(f"{name}={value!r}: expected a whole number of at least {least}.")
    if hold_out is not None:
        missing = {"coverage", "inside", "total", "low", "high"} - set(hold_out)
        if missing:
            raise ValueError(
                f"hold_out lacks {', '.join(sorted(missing))}: see write_report for its keys."
            )


def _rendered(content: dict[str, Any]) -> str:
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise ImportError('A report needs jinja2: pip install "temporalnmf[report]".') from error
    folder = files(__package__)
    html, style, script = (
        folder.joinpath(name).read_text(encoding="utf-8")
        for name in ("report.html", "report.css", "report.js")
    )
    # Names come from foreign files: all text is escaped, and the page's own policy lets no script
    # run but the one whose hash it names.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["unbroken"] = _unbroken
    return environment.from_string(html).render(
        content, style=style, script=script, script_hash=digest, data=_embedded(content["charts"])
    )


def _unbroken(text: str) -> Any:
    """Escaped text in which no line ends inside a date or between a number and its %."""
    from markupsafe import Markup, escape

    whole = r"\d+(?:-\d+)+|[+−]?[\d.,]+[ \N{NO-BREAK SPACE}]?%"
    return Markup(re.sub(whole, r'<span class="nb">\g<0></span>', str(escape(text))))


def _embedded(data: Any) -> str:
    """JSON that no HTML can end: the signs of a tag and of a comment are written as escapes."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
