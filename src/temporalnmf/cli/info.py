"""Description of a model file or a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..messages.formatting import number_text
from ..timeline.grid import time_texts
from . import data
from .console import JsonVoice, Voice
from .files import header_of, is_model, load_model
from .models import draws_text, effect_texts, season_texts, show_components, show_diagnosis, summary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..estimator import TemporalNMF
    from ..reading import TimeTable


def info(
    voice: JsonVoice,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A model file, or a table.")],
    how: data.Reading,
) -> None:
    """Show what a model file contains, or how a table is understood."""
    if is_model(Path(file)):
        _about_model(Path(file), voice)
    else:
        _about_table(file, data.read(file, how, voice), voice)


def _about_model(path: Path, voice: Voice) -> None:
    model, header = load_model(path), header_of(path)
    known = {
        "file": str(path),
        "bytes": path.stat().st_size,
        "format": header["format"],
        "schema": header["schema"],
        "versions": header["versions"],
        "parameters": header["parameters"],
        "data_in_file": model._series is not None,
        **summary(model),
    }
    for name, text in _lines(model, known, header["versions"]):
        voice.say(f"{name:<12}{text}")
    show_components(model, voice)
    if model.posterior_ is not None:
        show_diagnosis(model.posterior_, voice)
    voice.answer({"kind": "model", **known})


def _lines(
    model: TemporalNMF, known: Mapping[str, object], versions: Mapping[str, str]
) -> list[tuple[str, str]]:
    origin = getattr(model, "provenance_", None) or {}
    gaps = time_texts(model.times_[~model.observed_])
    few = f" ({', '.join(gaps[:5])}{', …' if len(gaps) > 5 else ''})"
    moves = model.chain_.has_law
    regime = model.chain_.regime() if moves else []
    held = "with the data" if known["data_in_file"] else "without the data"
    return [
        ("file", f"{known['file']}, {known['bytes']:,} bytes, {held}"),
        ("format", f"{known['format']}, schema {known['schema']}"),
        ("made by", ", ".join(f"{name} {number}" for name, number in versions.items())),
        ("size", f"{known['n_steps']} steps x {known['n_features']} features, "
                 f"{known['n_components']} components"),
        ("times", f"{known['first']} to {known['last']}, every {known['every']}"),
        ("gaps", f"{len(gaps)} of the steps{few}" if gaps else "none"),
        ("exposure", _exposure(model)),
        ("chain", f"{known['chain']}: {model.chain_.numbers()}" if moves else "none: plain NMF"),
        *_learned(model),
        *(() if isinstance(regime, list) else (("", str(regime)),)),
        ("likelihood", str(known["likelihood"])),
        *_of_likelihood(model),
        *_seasons(model),
        *(("" if n else "effects", text) for n, text in enumerate(effect_texts(model))),
        ("fit", _fit_text(model)),
        ("intervals", str(model.calibration_ or "not checked on the past")),
        *((name, origin[name]) for name in ("command", "source", "sha256", "date", "appended")
          if name in origin),
    ]  # fmt: skip


def _exposure(model: TemporalNMF) -> str:
    if model._days:
        return "the days in each step"
    return "given" if (model.exposure_ != 1.0).any() else "1 throughout"


def _learned(model: TemporalNMF) -> list[tuple[str, str]]:
    """Learned hyper-parameters: intervals, or the names of those that are means of draws."""
    from ..summary import learned_text

    draws, lines = model.posterior_, []
    if draws is None and (text := learned_text(model)):
        lines.append(("", f"learned (90 %): {text}"))
    elif draws is not None and draws.learned:
        lines.append(("", f"means of draws: {', '.join(draws.learned)}"))
    if model.smoothing == "learn":
        how = "learned" if draws is None else "the mean of draws"
        lines.append(("smoothing", f"{number_text(model.smoothing_)}, {how}"))
    return lines


def _of_likelihood(model: TemporalNMF) -> list[tuple[str, str]]:
    """Drawn parameters of the likelihood."""
    drawn = {} if model.posterior_ is None else model.posterior_.of_likelihood
    return [(name, f"{number_text(x.mean())}, the mean of draws") for name, x in drawn.items()]


def _seasons(model: TemporalNMF) -> list[tuple[str, str]]:
    """The swing of each season, and why the model has them, or none."""
    found = season_texts(model)
    if not found:
        return [("season", f"none: {model.season_reason_}")]
    swings = [("season", f"{name}: {text}") for name, text in found.items()]
    return [*swings, ("", f"reason: {model.season_reason_}")]


def _fit_text(model: TemporalNMF) -> str:
    if model.posterior_ is not None:
        settled = "settled" if model.converged_ else "NOT SETTLED"
        return f"{draws_text(model.posterior_)}, {settled}: see below"
    return model.stop_reason_ if model.converged_ else f"NOT CONVERGED: {model.stop_reason_}"


def _about_table(file: str, table: TimeTable, voice: Voice) -> None:
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
            "total": data.total(table.X),
            "exposure": table.exposure is not None,
            "features": names,
            "notes": table.notes,
        }
    )
