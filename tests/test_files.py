"""Who else is at work beside a file that is written, and how archives may be packed."""

import builtins
import io
import os
import re
import subprocess
import sys
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

from temporalnmf.cluster.sources import DATA_FOLDER, checkpoint_folder, shared_folder
from temporalnmf.runtime import archives
from temporalnmf.runtime.files import written_whole


def test_a_private_file_is_private_while_it_is_replaced(tmp_path):
    path = tmp_path / "model.npz"
    path.write_text("old")
    path.chmod(0o600)
    with written_whole(path) as partial:
        assert partial.stat().st_mode & 0o777 == 0o600
        partial.write_text("new")
        assert partial.stat().st_mode & 0o777 == 0o600
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == "new"


def test_a_link_that_lies_under_the_name_that_is_written_first_is_not_followed(tmp_path):
    """Names can be guessed."""
    path, victim = tmp_path / "model.npz", tmp_path / "victim"
    victim.write_text("old")
    with written_whole(path) as partial:
        partial.write_text("first")
    start, number, end = re.fullmatch(r"(.*-)(\d+)(\.partial.*)", partial.name).groups()
    (tmp_path / f"{start}{int(number) + 1}{end}").symlink_to(victim)
    with written_whole(path) as partial:
        partial.write_text("second")
    assert victim.read_text() == "old"
    assert path.read_text() == "second"


def test_leftovers_that_cannot_be_removed_do_not_stop_a_write(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    path = tmp_path / "model.npz"
    with written_whole(path) as partial:
        partial.write_text("old")
    left = tmp_path / partial.name.replace(f"-{os.getpid()}-", f"-{dead.pid}-")
    left.mkdir()  # a folder cannot be unlinked, whoever asks; nor could a file of another user
    with written_whole(path) as partial:
        partial.write_text("new")
    assert path.read_text() == "new"
    assert left.is_dir()


def test_an_interrupt_that_was_handled_does_not_replace_a_later_error(tmp_path):
    """Ctrl-C, then save what there is."""
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        with pytest.raises(ValueError, match="a mistake"), written_whole(tmp_path / "a"):
            raise ValueError("a mistake") from None


def test_the_cause_of_an_error_is_kept(tmp_path):
    with pytest.raises(ValueError, match="second") as caught, written_whole(tmp_path / "a"):
        raise ValueError("second") from KeyError("first")
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("how", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_compressed_by_bzip2_or_lzma_are_refused(how, tmp_path):
    """Python unpacks those whole, whatever a member says of its size."""
    array = io.BytesIO()
    np.save(array, np.zeros(3))
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", how) as file:
        file.writestr("a.npy", array.getvalue())
    with pytest.raises(
        ValueError, match=r"'a\.npy' is compressed in a way that NumPy does not use"
    ):
        archives.read_npz(path)


def test_archives_are_read_where_the_size_of_memory_is_unknown(tmp_path, monkeypatch):
    """As on Windows, which has no /proc and no sysconf."""
    path = tmp_path / "a.npz"
    np.savez(path, a=np.ones(3))
    usual = builtins.open

    def hidden(name, *arguments, **options):
        if str(name).startswith("/proc"):
            raise FileNotFoundError(name)
        return usual(name, *arguments, **options)

    monkeypatch.setattr(builtins, "open", hidden)
    monkeypatch.delattr(os, "sysconf")
    np.testing.assert_array_equal(archives.read_npz(path)["a"], np.ones(3))


class Client:
    """All that a folder asks of a cluster."""

    def run(self, function, *arguments):
        return {"worker": function(*arguments)}


def test_files_of_the_user_in_a_shared_folder_stay(tmp_path):
    own = tmp_path / "data-2020.npz"
    own.write_text("mine")
    with shared_folder(tmp_path, Client()) as folder:
        block = folder / DATA_FOLDER / "00000.npz"
        with written_whole(block) as partial:
            partial.write_text("ours")
    assert own.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == [own.name]


@pytest.mark.parametrize("name", ["fit.npz", "block-00000.3.npz"])
def test_links_out_of_a_checkpoint_folder_are_refused(name, tmp_path):
    victim, folder = tmp_path / "victim", tmp_path / "state"
    victim.write_text("old")
    folder.mkdir()
    (folder / name).symlink_to(victim)
    with pytest.raises(ValueError, match=name):
        checkpoint_folder(SimpleNamespace(checkpoint=folder, drawing=False))
    assert victim.read_text() == "old"
