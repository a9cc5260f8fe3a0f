"""The generated C of a bare Function is that Function."""

import re

import casadi as ca
import numpy as np
import pytest
from codegen_problems import nested_law, planar_arm, saturated_controller

import mbcasadi.codegen as codegen

# Both sides round the same operations; the compiler may only reorder none of them in ISO C.
ROUNDING = 1e-12
SAMPLES = 1000


def random_inputs(function: ca.Function, seed: int) -> list[ca.DM]:
    rng = np.random.default_rng(seed)
    inputs = []
    for i in range(function.n_in()):
        pattern = ca.repmat(function.sparsity_in(i), 1, SAMPLES)
        inputs.append(ca.DM(pattern, rng.normal(size=pattern.nnz())))
    return inputs


@pytest.mark.parametrize("make", [planar_arm, nested_law], ids=["SX", "nested MX"])
def test_generated_c_equals_the_function_on_random_inputs(make, tmp_path):
    function = make()
    compiled = codegen.export_c(function, tmp_path / "out").load()
    inputs = random_inputs(function, 1)
    expected = function.map(SAMPLES).call(inputs)
    actual = compiled.map(SAMPLES).call(inputs)
    for name, a, b in zip(function.name_out(), actual, expected, strict=True):
        assert np.max(np.abs(np.array(a - b))) <= ROUNDING * (1 + float(ca.norm_inf(ca.vec(b)))), (
            name
        )


def test_the_larger_of_a_number_and_nan_is_the_number_in_c(tmp_path):
    """As IEEE 754's maxNum and minNum, which CasADi evaluates."""
    x, y = ca.MX.sym("x", 4), ca.MX.sym("y", 4)
    function = ca.Function("ends", [x, y], [ca.fmax(x, y), ca.fmin(x, y), ca.vertcat(x, y)])
    compiled = codegen.export_c(function, tmp_path / "out").load()
    given = np.array([1.0, np.nan, 2.0, np.nan]), np.array([np.nan, -1.0, -3.0, np.nan])
    for found, expected in zip(compiled(*given), function(*given), strict=True):
        np.testing.assert_array_equal(np.array(found), np.array(expected))
    assert np.array(compiled(*given)[0]).ravel()[:3].tolist() == [1.0, -1.0, 2.0]
    assert np.array(compiled(*given)[1]).ravel()[:3].tolist() == [1.0, -1.0, -3.0]


@pytest.mark.parametrize("make", [planar_arm, nested_law])
def test_the_loaded_function_keeps_names_and_sparsity(make, tmp_path):
    function = make()
    compiled = codegen.export_c(function, tmp_path / "out").load()
    assert compiled.name() == function.name()
    assert compiled.name_in() == function.name_in()
    assert compiled.name_out() == function.name_out()
    for i in range(function.n_in()):
        assert compiled.sparsity_in(i) == function.sparsity_in(i)
    for i in range(function.n_out()):
        assert compiled.sparsity_out(i) == function.sparsity_out(i)


def test_a_plain_controller_loads_and_keeps_its_state_explicit(tmp_path):
    controller = saturated_controller()
    project = codegen.export_c(controller, tmp_path / "out")
    law = project.load()
    out = law(q=[0.1, -9], v=[0, 0], z=controller.z0)
    assert np.allclose(np.array(out["u"]).ravel(), [-2, 5], atol=ROUNDING)
    assert float(out["z_next"]) == 4.0
    assert project.manifest["u_max"] == [5.0, 5.0]
    assert project.manifest["period"] == 0.002
    assert project.manifest["inputs"][1]["units"] == ["rad/s", "rad/s"]


def test_a_solver_in_casadis_own_c_is_exported_without_its_printing(tmp_path):
    x, p = ca.MX.sym("x", 2), ca.MX.sym("p", 2)
    problem = {"x": x, "p": p, "f": ca.sumsqr(x - p), "g": x[0] + x[1]}
    solver = ca.qpsol("solver", "qrqp", problem, {"print_iter": True, "print_header": False})
    law = ca.Function("law", [p], [solver(p=p, lbg=0, ubg=1)["x"]], ["p"], ["x"])
    project = codegen.export_c(law, tmp_path / "out")
    assert "stdio.h" not in project.source.read_text()
    actual = np.array(project.load()([2.0, 0.5])).ravel()
    assert np.allclose(actual, [1.25, -0.25], atol=1e-9)  # projection onto x0 + x1 = 1


def test_the_library_can_be_loaded_twice_and_rebuilds_nothing(tmp_path):
    project = codegen.export_c(planar_arm(), tmp_path / "out")
    first, result = project.load(), project.build()
    second = codegen.open_project(project.folder).load()
    assert result.seconds == 0.0
    q, v = [0.3, 0.4], [1.0, -1.0]
    assert np.array_equal(np.array(first(q, v)[1]), np.array(second(q, v)[1]))


def test_a_second_export_to_the_same_folder_loads_the_new_law(tmp_path):
    x = ca.SX.sym("x")
    old = codegen.export_c(ca.Function("f", [x], [x + 1]), tmp_path / "out").load()
    new = codegen.export_c(ca.Function("f", [x], [x + 2]), tmp_path / "out", overwrite=True).load()
    assert (float(old(0)), float(new(0))) == (1.0, 2.0)


@pytest.mark.parametrize("make", [planar_arm, nested_law, saturated_controller])
def test_the_same_input_gives_the_same_bytes(make, tmp_path):
    folders = [codegen.export_c(make(), tmp_path / k).folder for k in ("a", "deeper/b")]
    contents = [
        {p.relative_to(f).as_posix(): p.read_bytes() for p in f.rglob("*") if p.is_file()}
        for f in folders
    ]
    assert contents[0] == contents[1]
    assert str(tmp_path).encode() not in b"".join(contents[0].values())


def test_the_operations_of_nested_calls_are_counted_at_each_call(tmp_path):
    inner = planar_arm()
    x = ca.MX.sym("x", 2)
    twice = ca.Function("twice", [x], [inner(x, x)[1] + inner(2 * x, x)[1]])
    project = codegen.export_c(twice, tmp_path / "out")
    assert project.operations > 2 * inner.n_instructions()
    assert project.operations < 2 * inner.n_instructions() + 20


def test_the_size_of_an_export_is_counted(tmp_path):
    x = ca.MX.sym("x", 2)
    inner = planar_arm()
    nested = ca.Function("nested", [x], [inner(x, x)[1] + inner(2 * x, x)[1]])
    project = codegen.export_c(nested, tmp_path / "out")
    with codegen.cache.disabled():
        first, again = project.size(), project.size()
    assert first.largest_function == inner.n_instructions()
    assert first.operations == project.operations > 2 * first.largest_function
    assert first.lines == len(project.source.read_text().splitlines())
    assert first.memory_bytes == 8 * int(
        project.header.read_text().split("MEMORY_DOUBLES ")[1].split()[0]
    )
    assert first.library_bytes == first.build.path.stat().st_size
    assert first.build.seconds > 0
    assert 2**20 < first.build.peak_bytes < 2**31  # no compiler works in a megabyte
    assert again.build == codegen.BuildResult(first.build.path, again.build.command, 0.0)


def test_signals_may_be_named_as_functions_of_the_generated_code(tmp_path):
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    law = ca.Function(
        "f", [x, y], [x - y, x + y], ["evaluate", "run_tick"], ["memory", "status_code"]
    )
    project = codegen.export_c(law, tmp_path / "out")
    assert [float(out) for out in project.load()(3, 1)] == [2.0, 4.0]
    assert "returned 0" in project.run_example()


def test_calls_that_fail_are_marked_as_rare(tmp_path):
    """What stands behind unmarked ones counts as cold, and gets no vectors."""
    text = codegen.export_c(nested_law(), tmp_path / "c").source.read_text()
    assert re.search(r"if \(CASADI_FAILS\(casadi_f\d+\(", text)
    assert not re.search(r"if \(casadi_f\d+\(", text)
