"""CasADi's runtime functions are hidden in a shared library, and nothing else changes by that."""

import re
import subprocess
from shutil import copytree, ignore_patterns

import casadi as ca
import numpy as np
import pytest
from codegen_problems import least_distance_controller, nested_law, saturated_controller
from test_single_precision import crank

import mbcasadi.codegen as codegen
from bench import law_cases
from mbcasadi.codegen.controller import HIDDEN, VISIBLE

INTERFACE = ("", "_n_in", "_n_out", "_incref", "_decref", "_checkout", "_release", "_work")
INTERFACE += ("_default_in", "_name_in", "_name_out", "_sparsity_in", "_sparsity_out")
EXPORTS = {
    "nested": nested_law,
    "plain": saturated_controller,
    "least_distance": lambda: least_distance_controller(4, 6),
    "impedance": lambda: next(
        case.build(law_cases.system_of(case.model))
        for case in law_cases.CASES
        if case.law == "impedance_control"
    ),
    "inverse dynamics": lambda: crank()[0],
}
CALLS = 20


@pytest.fixture(scope="module", params=EXPORTS)
def project(request, tmp_path_factory):
    return codegen.export_c(EXPORTS[request.param](), tmp_path_factory.mktemp("c") / "out")


def visible_twin(project, folder):
    """Return the same export without the directives that hide."""
    copytree(project.folder, folder, ignore=ignore_patterns("build"))
    twin = codegen.open_project(folder)
    text = twin.source.read_text()
    assert HIDDEN in text
    assert VISIBLE in text
    twin.source.write_text(text.replace(HIDDEN, "").replace(VISIBLE, ""))
    return twin


def exported_names(library):
    done = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {line.split()[-1] for line in done.stdout.splitlines()}


@pytest.mark.every(2)
def test_hidden_and_visible_libraries_give_the_same_bits(project, tmp_path):
    twin = visible_twin(project, tmp_path / "twin")
    hidden, visible = project.load(flags=("-O1",)), twin.load(flags=("-O1",))
    rng = np.random.default_rng(4)
    for _ in range(CALLS):
        patterns = [hidden.sparsity_in(i) for i in range(hidden.n_in())]
        inputs = [ca.DM(pattern, rng.normal(size=pattern.nnz())) for pattern in patterns]
        for name, a, b in zip(
            hidden.name_out(), hidden.call(inputs), visible.call(inputs), strict=True
        ):
            assert np.array(a).tobytes() == np.array(b).tobytes(), name


def test_a_library_shows_the_functions_of_its_header_and_of_casadi_only(project):
    names = exported_names(project.build(flags=("-O1",)).path)
    assert {f"{project.name}_init", f"{project.name}_step"} <= names
    header = project.header.read_text()
    allowed = {f"{project.name}{ending}" for ending in INTERFACE}
    others = {name for name in names - allowed if name.startswith(f"{project.name}_")}
    assert others <= set(re.findall(r"\w+", header))
    assert not {name for name in names if "casadi" in name}
