"""Entries of the cache: whole or absent, bounded, and never in a build's way."""

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mbcasadi.codegen import cache
from mbcasadi.codegen.cache import store
from mbcasadi.errors import ExportError

KILO = 1024


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MBCASADI_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MBCASADI_CACHE_LIMIT", raising=False)
    return tmp_path / "cache"


def test_an_entry_is_read_as_it_was_written():
    assert store.read("one") is None
    assert store.write("one", b"\0\nsome\nbytes") == ""
    assert store.read("one") == b"\0\nsome\nbytes"
    assert cache.info().entries == 1


def test_a_damaged_entry_is_removed(own_folder):
    for damage in (b"", b"x", b"no digest\nsome bytes"):
        store.write("one", b"some bytes")
        (own_folder / "one.entry").write_bytes(damage)
        assert store.read("one") is None
        assert not (own_folder / "one.entry").exists()
    store.write("one", b"some bytes")
    path = own_folder / "one.entry"
    path.write_bytes(path.read_bytes()[:-1] + b"z")
    assert store.read("one") is None


def test_the_digest_of_an_entry_is_that_of_its_content(own_folder):
    store.write("one", b"some bytes")
    line, _, content = (own_folder / "one.entry").read_bytes().partition(b"\n")
    assert line.decode() == hashlib.sha256(content).hexdigest()


def test_what_was_used_least_recently_is_removed_first(own_folder, monkeypatch):
    monkeypatch.setenv("MBCASADI_CACHE_LIMIT", "10K")
    for age, name in enumerate("abcd"):
        store.write(name, bytes(2 * KILO))
        os.utime(own_folder / f"{name}.entry", (1000 + age, 1000 + age))
    assert store.read("a") is not None  # used now
    store.write("e", bytes(3 * KILO))
    assert [name for name in "abcde" if store.read(name)] == ["a", "d", "e"]
    assert cache.info().size <= 10 * KILO


def test_what_is_larger_than_the_limit_is_not_kept(monkeypatch):
    monkeypatch.setenv("MBCASADI_CACHE_LIMIT", "1K")
    store.write("small", b"kept")
    assert "larger than its limit" in store.write("large", bytes(2 * KILO))
    assert store.read("large") is None
    assert store.read("small") == b"kept"


@pytest.mark.parametrize(
    ("text", "size"), [("", 2 * KILO**3), ("500", 500), ("1.5k", 1536), ("3 MiB", 3 * KILO**2)]
)
def test_a_limit_may_have_a_unit(text, size, monkeypatch):
    monkeypatch.setenv("MBCASADI_CACHE_LIMIT", text)
    assert cache.info().limit == size


def test_a_limit_that_is_no_size_is_an_error(monkeypatch):
    monkeypatch.setenv("MBCASADI_CACHE_LIMIT", "much")
    with pytest.raises(ExportError, match="MBCASADI_CACHE_LIMIT is 'much'; expected a size"):
        cache.info()


def test_a_folder_that_cannot_be_written_keeps_nothing(own_folder):
    own_folder.write_text("a file in its place")
    assert "not kept in the cache" in store.write("one", b"some bytes")
    assert store.read("one") is None
    assert cache.clear() == 0


def test_a_full_disk_keeps_nothing(own_folder, monkeypatch):
    store.write("one", b"some bytes")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert "No space left on device" in store.write("two", b"other bytes")
    assert [path.name for path in own_folder.iterdir()] == ["one.entry"]


def test_clearing_removes_entries_and_nothing_else(own_folder):
    store.write("one", b"some bytes")
    (own_folder / "notes.txt").write_text("of somebody")
    assert cache.clear() == 1
    assert [path.name for path in own_folder.iterdir()] == ["notes.txt"]


def test_off_and_disabled_keep_nothing(monkeypatch):
    store.write("one", b"some bytes")
    with cache.disabled():
        assert cache.folder() is None
        assert store.read("one") is None
    assert store.read("one") == b"some bytes"
    monkeypatch.setenv("MBCASADI_CACHE", "OFF")
    assert cache.folder() is None
    assert store.write("two", b"some bytes") == ""
    assert str(cache.info()) == "no cache (MBCASADI_CACHE=off)"


@pytest.mark.skipif(sys.platform == "win32", reason="folders of Windows are not in the environment")
def test_the_folder_is_in_that_of_the_user(monkeypatch, tmp_path):
    monkeypatch.delenv("MBCASADI_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "mbcasadi"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    caches = Path("Library", "Caches") if sys.platform == "darwin" else Path(".cache")
    assert cache.folder() == tmp_path / caches / "mbcasadi"


@pytest.mark.parametrize("path", [Path("~", ".cache", "mbcasadi"), None])
def test_a_user_without_a_home_has_no_cache(monkeypatch, path):
    def no_home(*_, **__):  # the answers of older and of newer versions of platformdirs
        if path is None:
            raise RuntimeError
        return path

    monkeypatch.delenv("MBCASADI_CACHE")
    monkeypatch.setattr(store, "user_cache_path", no_home)
    assert cache.folder() is None


def test_threads_read_whole_entries():
    contents = {bytes([65 + k]) * 200_000 for k in range(4)}

    def write_and_read(content):
        for _ in range(10):
            store.write("one", content)
            assert store.read("one") in contents

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write_and_read, contents))
    assert cache.info().entries == 1


def test_processes_read_whole_entries(own_folder):
    program = (
        "from mbcasadi.codegen.cache import store\n"
        "import sys\n"
        "for k in range(40):\n"
        "    store.write('one', sys.argv[1].encode() * 100_000)\n"
        "    found = store.read('one')\n"
        "    assert found is not None and len(set(found)) == 1 and len(found) == 100_000\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", program, letter]) for letter in "ab"]
    assert [process.wait(60) for process in processes] == [0, 0]
    assert [path.name for path in own_folder.iterdir()] == ["one.entry"]
