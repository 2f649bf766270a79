"""What is in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import data
from .console import Json, Voice, clean_errors
from .files import header_of, is_model, load_model
from .fit import draws_said, show_components, show_diagnosis, summary

if TYPE_CHECKING:
    from ..estimator import TemporalNMF
    from ..reading import TimeTable


def info(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A model file, or a table.")],
    time: data.Time = None,
    feature: data.Feature = None,
    value: data.Value = None,
    exposure: data.Exposure = None,
    freq: data.Freq = None,
    transpose: data.Transpose = False,
    drop_partial: data.DropPartial = False,
    json: Json = False,
) -> None:
    """Say what is in a model file, or what is understood of a table."""
    with clean_errors(json) as voice:
        if is_model(Path(file)):
            _about_model(Path(file), voice)
            return
        how = data.Reading(time, feature, value, exposure, freq, transpose, drop_partial)
        _about_table(file, data.read(file, how, voice), voice)


def _about_model(path: Path, voice: Voice) -> None:
    model, header = load_model(path), header_of(path)
    known = {
        "file": str(path),
        "bytes": path.stat().st_size,
        **{name: header[name] for name in ("format", "schema", "versions", "parameters")},
        "data_in_file": model._series is not None,
        **summary(model),
    }
    for name, text in _lines(model, known):
        voice.say(f"{name:<12}{text}")
    show_components(model, voice)
    if model.posterior_ is not None:
        show_diagnosis(model, voice)
    voice.answer({"kind": "model", **known})


def _lines(model: TemporalNMF, known: dict[str, Any]) -> list[tuple[str, str]]:
    versions, origin = known["versions"], known["provenance"] or {}
    gaps = known["gaps"]
    moves = known["chain"] != "none"  # plain NMF has no law to speak of
    regime = model.chain_.regime() if moves else []
    few = f" ({', '.join(gaps[:5])}{', …' if len(gaps) > 5 else ''})" if gaps else ""
    held = "with the data" if known["data_in_file"] else "without the data"
    lines = [
        ("file", f"{known['file']}, {known['bytes']:,} bytes, {held}"),
        ("format", f"{known['format']}, schema {known['schema']}"),
        ("made by", ", ".join(f"{name} {number}" for name, number in versions.items())),
        ("size", f"{known['n_steps']} steps x {known['n_features']} features, "
                 f"{known['n_components']} components"),
        ("times", f"{known['first']} to {known['last']}, every {known['every']}"),
        ("gaps", f"{len(gaps)} of the steps{few}" if gaps else "none"),
        ("exposure", "given" if known["exposure"] else "1 throughout"),
        ("chain", f"{known['chain']}: {model.chain_.numbers()}" if moves else "none: plain NMF"),
        *_learned(model),
        *(() if isinstance(regime, list) else (("", str(regime)),)),
        ("likelihood", known["likelihood"]),
        ("fit", _fit_said(model)),
        ("intervals", str(model.calibration_ or "not checked on the past")),
        *((name, origin[name]) for name in ("command", "source", "sha256", "date", "appended")
          if name in origin),
    ]  # fmt: skip
    return lines


def _learned(model: TemporalNMF) -> list[tuple[str, str]]:
    """What was learned by draws; the numbers above are means."""
    if model.posterior_ is None:
        return []
    from ..messages.formatting import number_text

    names = model.posterior_.learned
    lines = [("", f"means of draws: {', '.join(names)}")] if names else []
    if model.smoothing == "learn":
        lines.append(("smoothing", f"{number_text(model.smoothing_)}, the mean of draws"))
    return lines


def _fit_said(model: TemporalNMF) -> str:
    if model.posterior_ is not None:
        settled = "settled" if model.converged_ else "NOT SETTLED"
        return f"{draws_said(model)}, {settled}: see below"
    return model.stop_reason_ if model.converged_ else f"NOT CONVERGED: {model.stop_reason_}"


def _about_table(file: str, table: TimeTable, voice: Voice) -> None:
    from ..timeline.grid import time_texts

    texts = time_texts(table.times)
    names = table.features.tolist()
    more = f" and {len(names) - 8:,} more" if len(names) > 8 else ""
    voice.say(f"  features: {', '.join(names[:8])}{more}")
    voice.answer(
        {
            "kind": "table",
            "file": file,
            "sha256": data.checksum(data.source_path(file)),
            "n_steps": len(texts),
            "n_features": len(names),
            "first": texts[0],
            "last": texts[-1],
            "every": table.timeline.every,
            "absent": [texts[n] for n in table.timeline.absent],
            "total": data.total(table),
            "exposure": table.exposure is not None,
            "features": names,
            "notes": table.notes,
        }
    )
