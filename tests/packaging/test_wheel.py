"""A wheel is one package, complete, that needs no repository; an editable install too."""

import os
import re
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

import mbcasadi as mb

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The wheel's content in a folder."""
    folder = tmp_path_factory.mktemp("wheel")
    wheel = next(WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"]))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def run(site, code):
    """Run code with the wheel alone, in a folder of its own."""
    environment = os.environ | {"PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=site.parent,
        env=environment,
        check=True,
    )
    return done.stdout.split()


def test_a_wheel_puts_one_package_beside_its_metadata(installed):
    top = {entry.name for entry in installed.iterdir()}
    assert top == {"mbcasadi", f"mbcasadi-{mb.__version__}.dist-info"}


def test_a_wheel_has_every_file_of_the_package(installed):
    package = ROOT / "mbcasadi"
    ours = {
        file.relative_to(package)
        for file in package.rglob("*")
        if file.is_file() and file.suffix != ".pyc"
    }
    theirs = {f.relative_to(installed / "mbcasadi") for f in (installed / "mbcasadi").rglob("*")}
    assert not ours - theirs


def test_no_link_of_the_long_description_is_relative(installed):
    (metadata,) = installed.glob("*.dist-info/METADATA")
    description = metadata.read_text(encoding="utf-8").partition("\n\n")[2]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    relative = re.compile(r"\]\((?!https?://|#)[^)]*\)")
    assert relative.search(readme)
    assert not relative.search(description)
    assert "## Torques at a kilohertz" in description
    assert "[inverse dynamics]" not in description
    assert "inverse dynamics, exporting" in description  # the text of links stays


def test_with_an_address_of_the_source_links_are_absolute():
    text = "![A picture](docs/images/demo.png) and [a page](docs/a.md), [far](https://b.org/c.md)"
    assert runpy.run_path(str(ROOT / "hatch_build.py"))["long_description"](
        text, "https://x.org/y/"
    ) == (
        "![A picture](https://x.org/y/raw/main/docs/images/demo.png) and "
        "[a page](https://x.org/y/blob/main/docs/a.md), [far](https://b.org/c.md)"
    )


def test_models_are_found_in_a_wheel_and_in_an_editable_install(installed):
    code = "import mbcasadi; m = mbcasadi.models; print(m.path('four_bar'), *m.names())"
    path, *names = run(installed, code)
    assert Path(path) == installed / "mbcasadi" / "models" / "four_bar.xml"
    assert mb.models.path("four_bar") == ROOT / "mujoco_models" / "four_bar.xml"
    assert names == list(mb.models.names())
    assert names == sorted(file.stem for file in (ROOT / "mujoco_models").glob("*.xml"))


@pytest.mark.long
def test_examples_are_found_and_run_in_a_wheel(installed):
    code = "from mbcasadi.cli.app import app; app(['example', 'servo_constraint', 'gap.png'])"
    assert "stabilised:" in run(installed, code)
    assert (installed.parent / "gap.png").stat().st_size > 10_000
    programs = {file.name for file in (installed / "mbcasadi" / "examples").glob("*.py")}
    assert programs == {file.name for file in (ROOT / "examples").glob("*.py")}
