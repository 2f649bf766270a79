"""A fitted model as one HTML file. Needs the extra "report"."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from ..estimator import TemporalNMF
from ..forecasting.forecast import Forecast
from ..messages.errors import ArgumentError, Text
from ..runtime.files import refuse_overwriting, written_whole
from .content import HoldOut, report_content
from .texts import Content

if TYPE_CHECKING:
    from markupsafe import Markup
    from numpy.typing import ArrayLike

__all__ = ["report_content", "write_report"]


def write_report(
    model: TemporalNMF,
    path: str | PathLike[str],
    *,
    question: str | None = None,
    command: str | Sequence[str] | None = None,
    steps: int | None = None,
    forecast: Forecast | None = None,
    covariates: ArrayLike | None = None,
    hold_out: HoldOut | None = None,
    n_features: int = 12,
    source: str | PathLike[str] | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a report on a model as one self-contained HTML file.

    Parameters
    ----------
    model : TemporalNMF
        Fitted.
    path : str or Path
        HTML file to write; missing folders are created.
    question : str, default=None
        The question that the report answers; made from the data if not given.
    command : str or sequence of str, default=None
        The command that fitted the model, shown verbatim; the call in Python if not given.
    steps : int, default=None
        Steps to forecast, 0 for none; a twentieth of the series, but from three to twelve, if not
        given.
    forecast : Forecast, default=None
        An existing forecast, instead of `steps`.
    covariates : frame or array, default=None
        Covariates of the steps to forecast, as in `TemporalNMF.forecast`.
    hold_out : dict, default=None
        Result on held-out data: nominal "coverage", how many of the "total" entries were "inside"
        their intervals, the ends "low" and "high" of the 95 % confidence interval of that share,
        and, optionally, "words".
    n_features : int, default=12
        Features shown per component.
    source : str or Path, default=None
        The file of the data: its name is shown, and its checksum if it exists.
    overwrite : bool, default=False
        Whether an existing file may be replaced.

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
    refuse_overwriting(target, overwrite)
    if steps is not None and forecast is not None:
        raise ArgumentError("steps", steps, Text("and {forecast=} were both given: give only one."))
    for name, value, least in (("steps", steps, 0), ("n_features", n_features, 1)):
        if value is not None and (isinstance(value, bool) or int(value) != value or value < least):
            raise ArgumentError(name, value, f": expected a whole number of at least {least}.")
    if missing := HoldOut.__required_keys__ - set(hold_out or HoldOut.__required_keys__):
        lacking = ", ".join(sorted(missing))
        raise ValueError(f"hold_out lacks {lacking}: see write_report for its keys.")
    content = report_content(
        model,
        question=question,
        command=command,
        steps=steps,
        forecast=forecast,
        covariates=covariates,
        hold_out=hold_out,
        n_features=n_features,
        source=source,
    )
    with written_whole(target) as partial:
        partial.write_text(_rendered(content), encoding="utf-8", errors="replace", newline="\n")
    return target


def _rendered(content: Content) -> str:
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise ImportError('A report needs jinja2: pip install "temporalnmf[report]".') from error
    folder = files(__package__)
    html, style, script = (
        folder.joinpath(name).read_text(encoding="utf-8")
        for name in ("report.html", "report.css", "report.js")
    )
    # Names may come from untrusted files: all text is escaped, and the content security policy of
    # the page allows only the script with this hash.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["unbroken"] = _unbroken
    return environment.from_string(html).render(
        content, style=style, script=script, script_hash=digest, data=_embedded(content["charts"])
    )


def _unbroken(text: str) -> Markup:
    """Escaped text without line breaks inside dates or between a number and its %."""
    from markupsafe import Markup, escape

    whole = r"\d+(?:-\d+)+|[+−]?[\d.,]+[ \N{NO-BREAK SPACE}]?%"
    return Markup(re.sub(whole, r'<span class="nb">\g<0></span>', str(escape(text))))


def _embedded(data: object) -> str:
    """JSON with <, > and & escaped, so that it cannot end its script element."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
