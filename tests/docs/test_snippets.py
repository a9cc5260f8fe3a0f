"""Every snippet of the pages fits the installed package, and needs no file that a wheel lacks."""

import re
import shlex

import pytest
import typer
from support.snippets import PAGES, README, faults_of, snippets_of, texts_of
from typer.main import get_command
from typer.testing import CliRunner

import mbcasadi as mb
from mbcasadi.cli.app import app

IDS = [page.name if page == README else f"{page.parent.name}/{page.stem}" for page in PAGES]
OWN_FILES = {"robot.xml", "arm.xml", "hand.xml", "go2.xml", "my_go2.xml", "iiwa14.xml", "ur5e.xml"}
"""What pages call a file of the reader, or of Menagerie."""
REPOSITORY = re.compile(r"^(mujoco_models|tests|docs|bench|examples|mbcasadi)/")
WRITES = re.compile(r"(?:> |-o |--out |--report |--store |--video |--image )(\S+)")


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_names_and_arguments_in_the_python_of_a_page_exist(page):
    names = {"mb": mb}
    faults = [
        f"{snippet.place}: {fault}"
        for snippet in snippets_of(page, "python")
        for fault in faults_of(snippet.code, names)
    ]
    assert faults == []


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_the_python_of_a_page_reads_models_that_a_wheel_has(page):
    for snippet in snippets_of(page, "python"):
        if snippet.of_a_checkout:
            continue
        for text in texts_of(snippet.code):
            assert not REPOSITORY.match(text), f"{snippet.place}: {text} is in a checkout only"
            if re.fullmatch(r"\w+\.xml", text):
                is_written = f"{text}\n" in snippet.before  # shown as what an export writes
                own = text in OWN_FILES or is_written
                assert own or text.removesuffix(".xml") in mb.models.names(), snippet.place


def test_what_does_not_exist_is_a_fault():
    code = """
from mbcasadi.control import PostureTask, NoTask
import mbcasadi.mpc as mpc
mb.read_mjcf("four_bar", parameter=[])
mb.no_function(1)
mpc.LinearOptions(10, period=0.1)
task = PostureTask(kq=3)
PostureTask = 1
"""
    names = {"mb": mb}
    faults = list(faults_of(code.replace("PostureTask = 1", ""), names))
    assert len(faults) == 4
    assert "has no NoTask" in faults[0]
    assert len(list(faults_of(code, names))) == 3  # another PostureTask


def commands_of(page):
    """Yield the place and the words of each command of ours on a page, in a shell of the reader."""
    for snippet in snippets_of(page, "sh"):
        lines = snippet.code.replace("\\\n", " ").splitlines()
        for line in () if snippet.of_a_checkout else lines:
            if line.startswith("mbcasadi"):
                words = shlex.split(line.partition(" #")[0])
                redirected = [k for k, word in enumerate(words) if word in (">", "2>")]
                yield f"{snippet.place}: {line}", words[: min(redirected, default=None)]


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_the_commands_of_a_page_have_options_and_files_that_there_are(page):
    written = {"FILE"}
    for place, words in commands_of(page):
        line = " ".join(words)
        group = get_command(app)
        command = group.commands.get(words[1]) if len(words) > 1 else None
        arguments = words[2:]
        while hasattr(command, "commands"):
            command, arguments = command.commands[arguments[0]], arguments[1:]
        if command is not None:
            assert words[1] in group.commands, place
            parser = command.make_parser(typer.Context(command))
            values, rest, _ = parser.parse_args(args=arguments)
            assert not rest, place
            model, file = values.get("model"), values.get("controller")
            if model is not None:
                own = model in OWN_FILES or re.match(r"[A-Z]+(\.xml)?$|\$|mujoco_menagerie/", model)
                assert own or model in mb.models.names(), place
            if file is not None:
                earlier = page.read_text(encoding="utf-8").partition(line[:40])[0]
                made = {*WRITES.findall(earlier), *written}
                assert file in made, f"{place}: no command before writes {file}"
        written |= {*WRITES.findall(line)}


CHEAP = ("init four_bar", "schema", "cache info", "cache path", "example")
"""Commands without a compiler that all pages together take seconds for."""


def test_the_quick_commands_of_the_pages_run_in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = {
        tuple(words): place
        for page in PAGES
        for place, words in commands_of(page)
        if " ".join(words[1:3]).startswith(CHEAP) and not re.search(r"MODEL|\$|/", " ".join(words))
    }
    run = 0
    for words, place in lines.items():
        if words[1] == "example" and len(words) > 2:
            continue  # tests/examples runs all programs
        result = CliRunner().invoke(app, words[1:])
        assert result.exit_code == 0, f"{place}\n{result.output}"
        run += 1
    assert run >= 5
