"""C that strict compilers take without a word, and that raises no exception of the arithmetic."""

import shutil
import subprocess
import sys

import casadi as ca
import numpy as np
import pytest
from codegen_problems import saturated_controller
from test_single_precision import computed_torque, crank, horizon, iteration, phased, standing

from mbcasadi import codegen
from mbcasadi.codegen import InputLimits, Supervision
from mbcasadi.codegen.calls import new_memory
from mbcasadi.codegen.compiler import find_compiler
from mbcasadi.codegen.timing import run_timing, timing_c
from mbcasadi.control.laws import sampled_poses

STRICT = ("-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion")
STRICT += ("-Wshadow", "-Werror", "-fsyntax-only")
TICKS = 1000
SPEED = 0.5  # rad/s

TRAPS = """\
#define _GNU_SOURCE
#include <fenv.h>
__attribute__((constructor)) static void traps(void) {
  feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
}
"""

BUILDERS = {
    "law": computed_torque,
    "inverse dynamics": crank,
    "quadruped with cones": lambda: standing(cone="quadratic"),
    "linear MPC": horizon,
    "real-time iteration": iteration,
    "two phases": phased,
    "by hand": lambda: (saturated_controller(), {}),
}


def zero(controller):
    """Return a safe law that uses the first input."""
    name = controller.function.name_in(0)
    x = ca.SX.sym("x", controller.function.sparsity_in(0))
    u = ca.sin(ca.sum1(ca.vec(x))) * ca.DM.ones(controller.u_min.size)
    return ca.Function("zero", [x], [u], [name], ["u"])


KINDS = [(name, "double") for name in BUILDERS]
KINDS += [(name, "float") for name in BUILDERS if name != "real-time iteration"]


@pytest.mark.parametrize(("name", "real"), KINDS)
@pytest.mark.every(3)
def test_strict_compilers_have_no_remark(name, real, tmp_path):
    controller, _ = BUILDERS[name]()
    data = getattr(controller, "controller", controller)
    supervision = Supervision(
        inputs={data.inputs[0].name: InputLimits(jump=1.0)}, stale_after=2, safe_law=zero(data)
    )
    project = codegen.export_c(controller, tmp_path / "c", real=real, supervision=supervision)
    supervised = project.folder / f"{project.name}_supervised.c"
    single = ("-Wdouble-promotion",) if real == "float" else ()
    for compiler in {*find_compiler(), shutil.which("clang") or find_compiler()[0]}:
        for file in (project.source, project.folder / "main.c", supervised):
            command = [compiler, *STRICT, *single, f"-I{project.folder}", file]
            built = subprocess.run(command, capture_output=True, check=False)
            assert built.returncode == 0, built.stderr.decode()


def four_bar_states(law):
    q = sampled_poses(law.system, TICKS, spread=0.2, seed=3)
    v = SPEED * np.random.default_rng(3).standard_normal(q.shape)
    return {"q": q, "v": v, "ref": law.reference_at(q[0])}


@pytest.mark.skipif(sys.platform != "linux", reason="feenableexcept is of the GNU C library")
@pytest.mark.parametrize(("name", "real"), [kind for kind in KINDS if kind[0] != "by hand"])
@pytest.mark.every(3)
def test_valid_input_raises_no_exception_of_the_arithmetic(name, real, tmp_path):
    """No 0/0, no root of a negative number, no overflow, in no branch that is not taken either."""
    controller, inputs = BUILDERS[name]()
    if name in ("law", "inverse dynamics"):
        inputs = four_bar_states(controller)
    if name == "real-time iteration":
        start = controller.example_inputs()
        q = start["q"] + 0.02 * np.random.default_rng(2).standard_normal((60, start["q"].size))
        inputs = {"q": q, "ref": start["ref"]}
    if name == "quadruped with cones":
        repeats = TICKS // len(inputs["q"])
        inputs = inputs | {k: np.tile(inputs[k], (repeats, 1)) for k in ("q", "v")}
        inputs["mask"] = np.random.default_rng(1).random((len(inputs["q"]), 4)) < 0.8
    project = codegen.export_c(controller, tmp_path / "c", real=real)
    chained = bool(project.manifest["z0"])
    (tmp_path / "traps.c").write_text(TRAPS)
    (tmp_path / "ticks.c").write_text(timing_c(project.manifest, chained=chained))
    program = tmp_path / "ticks"
    command = [*find_compiler(), "-O0", "-w", f"-I{project.folder}", project.source]
    command += [tmp_path / "ticks.c", tmp_path / "traps.c", "-lm", "-o", program]
    subprocess.run(command, check=True)
    times = run_timing(project.manifest, program, inputs, 1, evict=False)
    assert set(times.status.tolist()) <= {0, 1, 2}


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.long
def test_without_vectors_the_control_is_the_same_but_for_rounding(real, tmp_path):
    controller, inputs = standing()
    project = codegen.export_c(controller, tmp_path / "c", real=real)
    tick = {"q": inputs["q"][0], "v": inputs["v"][0], "ref": inputs["ref"], "mask": np.ones(4)}
    plain = ("-O0", "-ffp-contract=off")
    memories = [
        new_memory(project.manifest, project.build(flags=(*plain, *more)).path)
        for more in ((), ("-DQUADRUPED_SCALAR",))
    ]
    first, second = (project.step(memory, tick)["u"] for memory in memories)
    eps = np.finfo(np.float32 if real == "float" else float).eps
    np.testing.assert_allclose(first, second, atol=10 * 1e4 * eps * 40)  # the condition is 1e4
    assert np.any(first != second)  # sums have another order


def test_the_traps_catch_a_division_by_zero(tmp_path):
    source = tmp_path / "zero.c"
    source.write_text(TRAPS + "int main(int n, char **v) { (void)v; return 1.0 / (n - 1) > 0; }\n")
    subprocess.run([*find_compiler(), "-O0", source, "-lm", "-o", tmp_path / "zero"], check=True)
    assert subprocess.run([tmp_path / "zero"], check=False).returncode < 0
