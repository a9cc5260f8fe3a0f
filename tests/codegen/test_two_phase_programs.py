"""The C of two phases in programs of its own: memory, interruptions, sanitizers, linking."""

import pytest
from test_c_program import SANITIZERS, run_program
from two_phase_problems import two_phase_controller

import mbcasadi.codegen as codegen


@pytest.fixture(scope="module", params=[True, False], ids=["rows prepared", "rows built"])
def project(request, tmp_path_factory):
    controller = two_phase_controller(rows_prepared=request.param)
    return codegen.export_c(controller, tmp_path_factory.mktemp("programs") / "c")


STATE = """
static double memory[PHASED_MEMORY_DOUBLES];
static const double q[2] = {0.1, 0.2}, ref[3] = {0.3, 0.4, 0.5};
static int same(const double *a, const double *b, size_t n) { return !memcmp(a, b, 8 * n); }
"""


@pytest.mark.every(2)
def test_a_memory_may_move_between_phases_and_z_be_its_own_successor(project, tmp_path):
    text = f"""
#include "phased.h"
{STATE}
static double moved[PHASED_MEMORY_DOUBLES];
int main(void) {{
  double z[4] = {{0}}, w[4] = {{0}}, u[3], expected[3];
  int k;
  if (phased_prepare(memory, ref, z) != PHASED_BAD_MEMORY) return 1;
  if (phased_feedback(memory, q, ref, z, u, z, 0, 0) != PHASED_BAD_MEMORY) return 2;
  if (phased_prepare(0, ref, z) != PHASED_BAD_MEMORY) return 3;
  if (phased_init(memory, sizeof memory) || phased_init(moved, sizeof moved)) return 4;
  for (k = 0; k < 5; ++k) {{
    if (phased_step(moved, q, ref, w, expected, w, 0, 0)) return 5;
    if (phased_prepare(memory, ref, z)) return 6;
    memcpy(moved, memory, sizeof moved);
    memset(memory, 0x55, sizeof memory);
    if (phased_feedback(moved, q, ref, z, u, z, 0, 0)) return 7;
    memcpy(memory, moved, sizeof moved);
    if (!same(u, expected, 3) || !same(z, w, 4)) return 8;
    if (phased_exit_flag(moved) != 1 || (k == 0 && phased_iterations(moved) < 1)) return 9;
  }}
  if (z[0] == 0 && z[1] == 0 && z[2] == 0 && z[3] == 0) return 10;
  if (phased_prepare(memory, ref, z) || phased_feedback(memory, q, ref, z, 0, 0, 0, 0)) return 11;
  return 0;
}}
"""
    run_program(tmp_path, text, project)


@pytest.mark.every(2)
def test_a_call_that_interrupts_another_is_refused_and_spoils_nothing(project, tmp_path):
    """A timer's handler requires feedback, or for a whole tick, while we prepare."""
    text = f"""
#include <signal.h>
#include <sys/time.h>
#include "phased.h"
{STATE}
static const double other[3] = {{-0.3, 0.1, 0.2}};
static double z[4], solution[3], expected[3];
static volatile long refused, answered, wrong;
static volatile int whole;
static int is_last_or_constant(const double *u) {{
  return same(u, expected, 3) || same(u, solution, 3) || same(u, phased_u_safe, 3);
}}
static void handler(int s) {{
  const double *right = whole ? solution : expected;
  double u[3], w[4];
  const int status = whole ? phased_step(memory, q, other, z, u, w, 0, 0)
                           : phased_feedback(memory, q, ref, z, u, w, 0, 0);
  (void)s;
  if (status == 0 && same(u, right, 3)) ++answered;
  else if (status == 3 && is_last_or_constant(u) && same(w, z, 4)) ++refused;
  else if (whole || status != 3 || !same(u, ref, 3)) ++wrong; /* not after its own */
  if (refused % 2 && phased_prepare(memory, other, z) == PHASED_BAD_MEMORY) ++wrong;
}}
static int prepare_until(long enough) {{
  double u[3];
  long k;
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  refused = answered = 0;
  for (k = 0; k < 30000000 && !(refused > enough && answered > enough); ++k) {{
    int prepared = phased_prepare(memory, ref, z), status;
    if (k % 8) continue;
    sigprocmask(SIG_BLOCK, &alarms, 0);
    status = phased_feedback(memory, q, ref, z, u, 0, 0, 0);
    sigprocmask(SIG_UNBLOCK, &alarms, 0);
    if (prepared || !(status == 3 || (status == 0 && same(u, expected, 3)))) ++wrong;
  }}
  return refused > enough && answered > enough && !wrong;
}}
int main(void) {{
  struct itimerval often = {{{{0, 50}}, {{0, 50}}}};
  if (phased_init(memory, sizeof memory)) return 1;
  if (phased_step(memory, q, other, z, solution, 0, 0, 0)) return 2;
  if (phased_step(memory, q, ref, z, expected, 0, 0, 0) || same(solution, expected, 3)) return 3;
  signal(SIGALRM, handler);
  setitimer(ITIMER_REAL, &often, 0);
  if (!prepare_until(20)) return 4;
  whole = 1;
  if (!prepare_until(20)) return 5;
  return 0;
}}
"""
    run_program(tmp_path, text, project, flags=("-D_GNU_SOURCE",))


@pytest.mark.every(2)
def test_sanitizers_find_nothing_in_any_order_of_calls(project, tmp_path):
    text = """
#include "phased.h"
int main(void) {
  static const double odd[8] = {0, 1, -1, NAN, INFINITY, -INFINITY, 1e200, 1e-200};
  double *memory = malloc(PHASED_MEMORY_BYTES);
  long k, count[5] = {0};
  unsigned seed = 1;
  if (phased_init(memory, PHASED_MEMORY_BYTES)) return 1;
  for (k = 0; k < 40000; ++k) {
    double in[9], u[3], z[4], status, residual;
    int i, code;
    for (i = 0; i < 9; ++i) {
      seed = seed * 1664525u + 1013904223u;
      in[i] = (seed >> 28) < 15 ? (double)(seed >> 8 & 0xffff) / 6553.6 - 5 : odd[seed >> 20 & 7];
    }
    if (seed >> 30) phased_prepare(memory, in + 2, in + 5);
    if ((seed >> 29 & 3) == 1) phased_prepare(memory, in + 2, 0);
    code = phased_feedback(memory, in, in + 2, in + 5, u, z, &status, &residual);
    if (code != (int)status || code < 0 || code > 4) return 2;
    ++count[code];
    for (i = 0; i < 3; ++i)
      if (!(fabs(u[i]) <= 4)) return 3;
  }
  free(memory);
  return count[0] && count[2] && count[3] ? 0 : 4;
}
"""
    run_program(tmp_path, text, project, flags=SANITIZERS)
