"""The C++ header: it compiles without warnings, and its object is the C."""

import re
import shutil
import subprocess

import numpy as np
import pytest

import mbcasadi as mb
from bench import law_cases
from mbcasadi import control, models, mpc
from mbcasadi.codegen.compiler import find_compiler

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++: apt-get install g++")

WARNINGS = (
    *("-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Wold-style-cast"),
    *("-pedantic", "-Werror"),
)
TICKS = 30
PROGRAM = """
#include <cstdio>
#include <new>
#include "@name@.hpp"
static int allocations = 0;
void *operator new(std::size_t) { ++allocations; throw std::bad_alloc(); }
namespace law = @name@;
static law::Controller first;
template <std::size_t N> static bool read(std::array<double, N> &values) {
  for (double &value : values)
    if (std::scanf("%lf", &value) != 1) return false;
  return true;
}
static void print(const law::Outputs &outputs, law::Status status) {
  std::printf("%d", static_cast<int>(status));
  for (const double u : outputs.u) std::printf(" %.17g", u);
  std::printf("\\n");
}
int main() {
@declarations@
  law::Inputs inputs;
@given@
  law::Outputs outputs, others;
  for (int k = 0; @read@; ++k) {
    if (k == @ticks@) first.reset();
    law::Controller second = first; /* a copy is in the same state */
    const law::Status status = @tick@;
    print(outputs, status);
    if (second.step(inputs, others) != status || others.u != outputs.u) return 1;
  }
  return allocations;
}
"""


def hopping_mass():
    """Return a controller in two phases: a real-time iteration."""
    system = mb.read_mjcf(
        '<mujoco><worldbody><body><joint name="x" type="slide"/><geom size="0.1"/></body>'
        '</worldbody><actuator><motor name="push" joint="x"/></actuator></mujoco>'
    )
    problem = mpc.optimal_control_problem(system, 4, 0.02, [mpc.Cost(Q=np.ones(2), R=1.0)])
    return mpc.real_time_iteration(problem)


def crank():
    task = control.PostureTask(("crank",), kp=100.0)
    return control.InverseDynamicsQP(mb.read_mjcf(models.path("four_bar")), [task])


def compiled(tmp_path, project, text, standard):
    (tmp_path / "program.cpp").write_text(text, encoding="utf-8")
    law, program = tmp_path / "law.o", tmp_path / "program"
    command = [*find_compiler(), "-std=c99", *project.manifest["flags"]]
    subprocess.run([*command, "-c", str(project.source), "-o", str(law)], check=True)
    command = ["g++", f"-std=c++{standard}", *WARNINGS, f"-I{project.folder}", "program.cpp"]
    done = subprocess.run(
        [*command, str(law), "-lm", "-o", str(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize("standard", [17, 20])
@pytest.mark.parametrize("make", [crank, hopping_mass])
@pytest.mark.every(2)
def test_the_object_is_the_c(make, standard, tmp_path, monkeypatch):
    project = mb.export_c(make(), tmp_path / "out")
    inputs = [s for s in project.manifest["inputs"] if s["name"] != "z"]
    names = [s["name"] for s in inputs]
    values = {
        "declarations": "".join(
            f"  std::array<double, {s['size']}> {s['name']};\n" for s in inputs
        ),
        "given": "".join(f"  inputs.{n} = {n};\n" for n in names),
        "read": " && ".join(f"read({n})" for n in names),
        "ticks": TICKS // 2,
        "tick": "(first.prepare(inputs), first.feedback(inputs, outputs))"
        if project.manifest["prepared_from"]
        else "first.step(inputs, outputs)",
        "name": project.name,
    }
    text = re.sub(r"@(\w+)@", lambda match: str(values[match[1]]), PROGRAM)
    program = compiled(tmp_path, project, text, standard)

    rng = np.random.default_rng(2)
    record = [{s["name"]: rng.uniform(-0.3, 0.3, s["size"]) for s in inputs} for _ in range(TICKS)]
    for row in record:
        row.update({"mask": np.ones(row["mask"].size)} if "mask" in row else {})
    lines = (" ".join(repr(float(x)) for n in names for x in row[n]) for row in record)
    done = subprocess.run([str(program)], input="\n".join(lines), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    memory, z = project.memory(), np.array(project.manifest["z0"])
    printed = done.stdout.splitlines()
    assert len(printed) == TICKS
    for k, (row, line) in enumerate(zip(record, printed, strict=True)):
        if k == TICKS // 2:
            memory, z = project.memory(), np.array(project.manifest["z0"])
        outputs = project.step(memory, row | {"z": z})
        z = outputs["z_next"]
        status, *u = (float(word) for word in line.split())
        assert status == outputs["status"][0]
        assert np.array_equal(u, outputs["u"])


def test_names_limits_and_statuses_are_those_of_the_manifest(tmp_path):
    project = mb.export_c(crank(), tmp_path / "out", name="bar")
    text = """
#include <cstdio>
#include <cstring>
#include "bar.hpp"
static_assert(bar::period == BAR_PERIOD && bar::Q::rocker == 2, "");
static_assert(bar::is_safe_output(bar::Status::bad_input_safe_output), "");
static_assert(!bar::is_safe_output(bar::Status::feasible_not_optimal), "");
static_assert(bar::Flag::clipped == 8, "");
int main() {
  static bar::Controller controller;
  bar::Outputs outputs;
  const std::array<double, 3> zeros{};
  bar::Inputs inputs;
  if (!inputs.q.is_null() || inputs.q.size() != 3 || inputs.q.begin() != inputs.q.end()) return 1;
  inputs.q = zeros;
  if (controller.step(inputs, outputs) != bar::Status::solved) return 2;
  if (controller.exit_flag() != 1 || controller.u_max()[0] != bar_u_max[0]) return 3;
  if (controller.state() == bar::Controller().state()) return 4;
  controller.limit_iterations(0);
  return std::strcmp(bar::text(bar::Status::solved), "solved");
}
"""
    program = compiled(tmp_path, project, text, 17)
    assert subprocess.run([str(program)], check=False).returncode == 0


@pytest.mark.parametrize("case", law_cases.CASES[::4], ids=lambda case: case.name)
@pytest.mark.every(3)
def test_the_header_of_every_kind_of_law_compiles(case, tmp_path):
    project = mb.export_c(case.build(law_cases.system_of(case.model)), tmp_path / "out")
    use = f"int main() {{ static {project.name}::Controller c; (void)c; }}\n"
    (tmp_path / "use.cpp").write_text(f'#include "{project.name}.hpp"\n{use}')
    command = ["g++", "-std=c++17", "-fsyntax-only", *WARNINGS, f"-I{project.folder}"]
    subprocess.run([*command, str(tmp_path / "use.cpp")], check=True)
