"""Messages: one meaning, and the spelling of each front end."""

import copy
import itertools
import pickle
import re
import warnings
from pathlib import Path
from string import Formatter
from typing import get_args

import pytest

import temporalnmf
from commands import refused
from temporalnmf.cli import notes as cli_notes
from temporalnmf.cli.spelling import as_advice, as_option
from temporalnmf.forecasting import notes
from temporalnmf.forecasting.notes import Note
from temporalnmf.messages.arguments import check_choice
from temporalnmf.messages.errors import Arg, ArgumentError, Text, message_of
from temporalnmf.messages.warning import warn
from temporalnmf.report import notes as report_notes

FRONT_ENDS = {"python": notes.WORDS, "cli": cli_notes.WORDS, "report": report_notes.WORDS}


@pytest.mark.parametrize("words", FRONT_ENDS.values(), ids=FRONT_ENDS)
def test_every_note_has_words_in_every_front_end(words):
    assert set(words) == set(get_args(notes.Code))


@pytest.mark.parametrize("words", FRONT_ENDS.values(), ids=FRONT_ENDS)
def test_front_ends_need_no_facts_but_those_of_python(words):
    """A name of a component is the only fact that Python has no use for."""

    def facts(template):
        return {field for _, field, _, _ in Formatter().parse(template) if field}

    for code, template in words.items():
        assert facts(template) <= facts(notes.WORDS[code]) | {"name"}, code


def test_each_front_end_has_its_own_spelling():
    for code, text in notes.WORDS.items():
        assert "--" not in text, code
    for code in ("no_intervals", "not_checked", "beyond_checked"):
        assert re.search("--(chain|calibrate)", cli_notes.WORDS[code])
    for front_end in (cli_notes.WORDS, report_notes.WORDS):
        for code, text in front_end.items():
            assert not re.search(r"\w\(|chain=", text), code
    for code, text in report_notes.WORDS.items():
        assert "--" not in text, code


def test_notes_survive_pickle_and_copy():
    note = Note("few_samples", level="99 %", samples=1000, wanted=Arg("n_samples", "5000"))
    for other in (pickle.loads(pickle.dumps(note)), copy.deepcopy(note)):
        assert other == note == str(note)
        assert (other.code, other.facts) == (note.code, note.facts)
        assert other.render(report_notes.WORDS).endswith("found from 1,000 samples.")


def test_notes_of_earlier_versions_keep_their_text():
    assert Note("Some {text}.").render(cli_notes.WORDS) == "Some {text}."


def test_advice_spells_options_of_any_command_and_other_arguments_as_in_python():
    assert as_option(Arg("n_draws", "500")) == "n_draws=500"
    # Advice may mean the command that fitted the model.
    assert as_advice(Arg("n_draws", "500")) == "--draws 500"
    assert as_advice(Arg("n_draws")) == "--draws"
    assert as_advice(Arg("chain", "'gap'")) == "--chain gap"
    assert as_advice(Arg("chain", "'a b'")) == "--chain 'a b'"
    assert as_advice(Arg("smoothing", "0.1")) == "smoothing=0.1"


def test_a_command_spells_arguments_as_its_own_options():
    assert "--chain rat is not known" in refused("fit", "sotu", "--chain", "rat")
    assert "chain='rat' is not known" in refused("simulate", "rat")
    said = refused("fit", "sotu", "--solver", "gibbs", "--likelihood", "exponential")
    assert "--likelihood exponential: --solver gibbs has posterior draws for" in said
    assert "Use --solver accelerated for this one." in said


def test_an_error_about_an_argument_is_a_value_error_with_parts():
    with pytest.raises(
        ValueError, match=r"^way='up' is not known\. Choose one of a, b\.$"
    ) as caught:
        check_choice("way", "up", ("a", "b"))
    assert isinstance(caught.value, ArgumentError)
    assert caught.value.argument == "way"
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    path = ArgumentError("checkpoint", Path("a.npz"), "is a folder.")
    assert str(path) == "checkpoint='a.npz' is a folder."


def test_texts_nest_and_may_be_warnings():
    text = Text("Note: {inner}", inner=Text("set {n_tune=}."))
    assert str(text) == "Note: set n_tune=."
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn(text)
    assert str(caught[0].message) == "Note: set n_tune=."
    assert message_of(caught[0].message, as_advice) == "Note: set --tune."


def test_only_the_command_line_spells_options():
    """Rooms that have been converted stay so."""
    source = Path(temporalnmf.__file__).parent
    rooms = ("experiments", "forecasting", "inference", "sampling", "report")
    files = {room: sorted((source / room).rglob("*.py")) for room in rooms}
    assert all(files.values())
    found = [
        f"{path.name}: {line.strip()}"
        for path in itertools.chain(*files.values())
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"(?<![\w-])--[a-z]", line)
    ]
    assert found == []
