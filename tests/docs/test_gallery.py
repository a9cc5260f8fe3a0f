"""The gallery shows every video that its script makes, and they stay small."""

import re
import runpy

from support.pages import DOCS

GALLERY = runpy.run_path(str(DOCS / "tools" / "make_gallery.py"))
ALL_TOGETHER = 3_000_000  # bytes


def videos_of(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(r'<video src="(?:\.\./\.\./)?videos/(\w+)\.mp4"', text)


def test_each_video_is_shown_once_with_the_command_that_makes_it():
    text = (DOCS / "results/gallery.md").read_text(encoding="utf-8")
    shown = videos_of("results/gallery.md")
    assert sorted(shown) == sorted(GALLERY["CLIPS"])
    for name in shown:
        assert f"make_gallery.py {name}\n" in text or f"--video {name}.mp4\n" in text


def test_the_videos_of_both_pages_exist_and_are_small():
    files = {path.stem: path.stat().st_size for path in GALLERY["VIDEOS"].glob("*.mp4")}
    assert set(files) == set(GALLERY["CLIPS"])
    assert set(videos_of("index.md")) <= set(files)
    assert max(files.values()) <= GALLERY["LARGEST"]
    assert sum(files.values()) <= ALL_TOGETHER
