"""The generated C in programs of its own: memory, threads of control, sanitizers, linking."""

import shutil
import subprocess

import pytest
from codegen_problems import least_distance_controller, nested_law, saturated_controller
from two_phase_problems import two_phase_controller

import mbcasadi.codegen as codegen
from mbcasadi.codegen.compiler import find_compiler

WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter")

# A problem with two unknowns and three rows: x0 + x1 >= 2, -5 <= x0 <= 0.25, no third row.
PROBLEM = """
static const double A[6] = {1, 1, 0, 1, 0, 0}, lower[3] = {2, -5, -1e30};
static const double upper[3] = {1e30, 0.25, 1e30};
static const double x_expected[2] = {0.25, 1.75};
static int close_to(const double *x) {
  return fabs(x[0] - x_expected[0]) < 1e-9 && fabs(x[1] - x_expected[1]) < 1e-9;
}
"""
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
INCLUDES = "#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("c") / "ldp"
    return codegen.export_c(least_distance_controller(2, 3), folder)


def solver_flags(*projects):
    flags = []
    for p in projects:
        if (p.folder / "daqp").exists():
            flags += ["-isystem", f"{p.folder}/daqp/include", f"{p.folder}/daqp/libdaqpstat.a"]
    return flags


def run_program(tmp_path, text, *projects, flags=()):
    """Compile `text` with the projects, warnings as errors, and run it; returns its output."""
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(INCLUDES + text)
    command = [*find_compiler(), *WARNINGS, "-g", "-O1", *flags, str(source)]
    command += [f"{p.folder}/{p.name}.c" for p in projects]
    command += [f"-I{p.folder}" for p in projects] + solver_flags(*projects)
    built = subprocess.run([*command, "-lm", "-o", program], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    process = subprocess.run([str(program)], capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


MADE = {
    "QP": lambda: least_distance_controller(4, 6),
    "nested": nested_law,
    "plain": saturated_controller,
    "rows prepared": two_phase_controller,
    "rows built": lambda: two_phase_controller(rows_prepared=False),
}
NO_OUTPUT = {"malloc", "calloc", "realloc", "free", "printf", "puts", "fwrite"}


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.every(2)
def test_files_build_without_a_warning_and_the_law_allocates_and_prints_nothing(kind, tmp_path):
    project = codegen.export_c(MADE[kind](), tmp_path / "out")
    headers = [f for f in solver_flags(project) if not f.endswith(".a")]
    for level in ("-O0", "-O3"):
        for name in (f"{project.name}_external", "main", project.name):
            command = [
                *find_compiler(), *WARNINGS, "-Wpedantic", level, "-c", f"{name}.c", *headers,
            ]  # fmt: skip
            subprocess.run([*command, "-o", f"{name}.o"], cwd=project.folder, check=True)
    if shutil.which("nm"):
        command = ["nm", "-u", project.folder / f"{project.name}.o"]
        listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        symbols = {line.split()[-1].removeprefix("_") for line in listing.splitlines()}
        assert symbols or kind == "plain"  # it is the list of what is called
        assert not symbols & NO_OUTPUT


def test_two_memories_may_be_interleaved_and_moved(project, tmp_path):
    text = f"""
#include "qp.h"
{PROBLEM}
static double first[QP_MEMORY_DOUBLES], second[QP_MEMORY_DOUBLES], moved[QP_MEMORY_DOUBLES];
int main(void) {{
  static const double A2[6] = {{0, 0, 0, 0, 2, 0}}, lower2[3] = {{-1e30, 3, -1e30}};
  double x[2], y[2], z[3] = {{0}}, w[3] = {{0}};
  int k;
  if (qp_init(first, sizeof first) || qp_init(second, sizeof second)) return 1;
  for (k = 0; k < 20; ++k) {{
    if (qp_step(first, A, lower, upper, z, x, z, 0, 0) || !close_to(x)) return 2;
    /* row 1 is 2 x1 >= 3 */
    if (qp_step(second, A2, lower2, 0, w, y, w, 0, 0) != 2) return 3; /* upper = 0: infeasible */
    if (qp_exit_flag(first) != 1 || qp_exit_flag(second) == 1) return 4;
  }}
  if (z[0] != -1 || z[1] != 1 || z[2] != 0) return 5;
  if (qp_iterations(first) > 2) return 6; /* warm: the active set is known */
  memcpy(moved, first, sizeof first);
  memset(first, 0x55, sizeof first);
  if (qp_step(moved, A, lower, upper, z, x, z, 0, 0) || !close_to(x)) return 7;
  printf("ok\\n");
  return 0;
}}
"""
    assert run_program(tmp_path, text, project) == "ok\n"


def test_memory_that_is_null_small_misaligned_or_raw_is_refused(project, tmp_path):
    text = f"""
#include "qp.h"
{PROBLEM}
static double memory[QP_MEMORY_DOUBLES + 1];
int main(void) {{
  double x[2], z[3] = {{0}};
  if (qp_step(memory, A, lower, upper, z, x, z, 0, 0) != QP_BAD_MEMORY) return 1;
  if (qp_step(0, A, lower, upper, z, x, z, 0, 0) != QP_BAD_MEMORY) return 2;
  if (qp_init(0, sizeof memory) != QP_BAD_MEMORY) return 3;
  if (qp_init(memory, 64) != QP_BAD_MEMORY) return 4;
  if (qp_init((char *)memory + 4, QP_MEMORY_BYTES) != QP_BAD_MEMORY) return 5;
  if (qp_init(memory, QP_MEMORY_BYTES) != QP_OK) return 6;
  if (qp_step(memory, A, lower, upper, z, x, z, 0, 0) || !close_to(x)) return 7;
  if (qp_step(memory, A, lower, upper, 0, 0, 0, 0, 0) != 0) return 8; /* null outputs */
  return 0;
}}
"""
    run_program(tmp_path, text, project)


def test_two_controllers_link_into_one_program(project, tmp_path):
    other = codegen.export_c(least_distance_controller(2, 3, "other"), tmp_path / "other")
    plain = codegen.export_c(saturated_controller(), tmp_path / "pd")
    text = f"""
#include "qp.h"
#include "other.h"
#include "pd.h"
{PROBLEM}
static double a[QP_MEMORY_DOUBLES], b[OTHER_MEMORY_DOUBLES], c[PD_MEMORY_DOUBLES];
int main(void) {{
  double x[2], y[2], u[PD_U_SIZE], z[3] = {{0}}, w[3] = {{0}}, ticks[PD_Z_SIZE];
  double q[PD_Q_SIZE] = {{0}}, v[PD_V_SIZE] = {{0}};
  if (qp_init(a, sizeof a) || other_init(b, sizeof b) || pd_init(c, sizeof c)) return 1;
  if (qp_step(a, A, lower, upper, z, x, z, 0, 0) || !close_to(x)) return 2;
  if (other_step(b, A, lower, upper, w, y, w, 0, 0) || !close_to(y)) return 3;
  q[PD_Q_KNEE] = 0.1;
  ticks[PD_Z_TICKS] = pd_z0[0];
  if (pd_step(c, q, v, ticks, u, ticks, 0)) return 4;
  if (fabs(u[PD_U_MOTOR_1_2] + 2) > 1e-12 || ticks[0] != 4 || pd_u_max[0] != 5) return 5;
  return 0;
}}
"""
    run_program(tmp_path, text, project, other, plain)


def test_sanitizers_find_nothing_even_with_nan_and_infinity(project, tmp_path):
    text = """
#include "qp.h"
int main(void) {
  static const double odd[8] = {0, 1, -1, NAN, INFINITY, -INFINITY, 1e200, 1e-200};
  double *memory = malloc(QP_MEMORY_BYTES);
  long k, solved = 0;
  unsigned seed = 1;
  if (qp_init(memory, QP_MEMORY_BYTES)) return 1;
  for (k = 0; k < 20000; ++k) {
    double in[15], x[2], z[3], status, lam[3];
    int i;
    for (i = 0; i < 15; ++i) {
      seed = seed * 1664525u + 1013904223u;
      in[i] = (seed >> 28) < 12 ? (double)(seed >> 8 & 0xffff) / 6553.6 - 5 : odd[seed >> 20 & 7];
    }
    solved += qp_step(memory, in, in + 6, in + 9, in + 12, x, z, &status, lam) == 0;
    for (i = 0; i < 2; ++i)
      if (!isfinite(x[i])) return 2;
  }
  if (solved == 0 || solved == k) return 3;
  free(memory);
  return 0;
}
"""
    run_program(tmp_path, text, project, flags=SANITIZERS)
