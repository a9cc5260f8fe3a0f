"""The page on a first robot: its numbers, and its C++ against the header of its controller."""

import shutil
import subprocess
from pathlib import Path

import mujoco
import pytest
from support.corpora import robot
from support.pages import DOCS, assert_prints_what_it_says

import mbcasadi as mb

PAGE = (DOCS / "guides/first-robot.md").read_text(encoding="utf-8")
SCENE = """
<mujoco model="go2 scene">
  <include file="go2.xml"/>
  <worldbody><geom name="floor" size="0 0 0.05" type="plane"/></worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """Return the names of the page's blocks up to the tuning, which print what they show."""
    folder = tmp_path_factory.mktemp("first")
    home = folder / "mujoco_menagerie" / "unitree_go2"
    home.mkdir(parents=True)
    shutil.copy(robot("men__unitree_go2__go2"), home / "go2.xml")
    (home / "scene.xml").write_text(SCENE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return assert_prints_what_it_says("guides/first-robot.md", 6, last="## Tune")


def test_the_page_prints_what_it_says_up_to_the_tuning(names):
    assert names["ctl"].solve(names["stand"], names["still"], names["ref"]).solved


def test_the_program_of_the_page_compiles_against_the_header(names, tmp_path):
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler on the PATH")
    project = mb.export_c(names["ctl"], tmp_path / "balance")
    source = PAGE.split("```cpp\n")[1].split("```")[0]
    (tmp_path / "main.cpp").write_text(source)
    includes = [f"-I{project.folder}", f"-I{Path(mujoco.__file__).parent / 'include'}"]
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    checked = subprocess.run(
        [compiler, *flags, *includes, "main.cpp"], cwd=tmp_path, capture_output=True, text=True
    )
    assert not checked.returncode, checked.stderr
