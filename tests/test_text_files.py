"""Files that are written completely or not at all."""

import errno
from pathlib import Path

import pytest

from mbcasadi.errors import ProblemError
from mbcasadi.text_files import write_whole


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    assert write_whole(path, "first") == path

    def fills(self, text, **_options):
        with self.open("w") as file:
            file.write(text[:3])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fills)
    with pytest.raises(ProblemError, match=r"cannot write .*page.html: No space left on device"):
        write_whole(path, "second")
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    assert path.read_text() == "first"


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ProblemError, match=r"cannot write .*none.*No such file"):
        write_whole(tmp_path / "none" / "page.html", "text")
