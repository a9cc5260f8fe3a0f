"""Plans and ticks in two threads: no plan is torn, and two exports live in one program."""

import os
import shutil
import subprocess

import pytest
from support.two_rates_problems import BAD_INPUT, HELD, two_rates

import mbcasadi as mb
from mbcasadi.codegen.compiler import find_compiler
from mbcasadi.description.status import Flag

PROGRAM = """
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include "hand.h"

#define CHANGES %(changes)d

static double memory[HAND_MEMORY_DOUBLES];
static int clock_ticks, done;

static void *plans(void *unused) {
  const double q[2] = {0}, v[2] = {0};
  double command, t;
  while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
    t = __atomic_load_n(&clock_ticks, __ATOMIC_RELAXED) * HAND_PERIOD;
    command = 3 * t;
    if (hand_plan(memory, q, v, &command, &t, 0, 0, 0, 0)) return memory;
  }
  return unused;
}

int main(void) {
  const double q[2] = {0}, v[2] = {0};
  double u[4], age, t, last = -1;
  int k, code, torn = 0, changes = 0, backwards = 0;
  pthread_t thread;
  void *failed;
  if (hand_init(memory, sizeof memory)) return 1;
  if (pthread_create(&thread, 0, plans, 0)) return 1;
  for (k = 0; k < %(most)d && (k < %(least)d || changes < CHANGES); ++k) {
    __atomic_store_n(&clock_ticks, k, __ATOMIC_RELAXED);
    t = k * HAND_PERIOD;
    code = hand_tick(memory, q, v, &t, u, 0, 0, 0, 0, &age);
    if (code == HAND_NO_PLAN) continue;
    if (code) return 2;
    if (u[0] > last) ++changes;
    if (u[0] < last) ++backwards;
    last = u[0];
    /* one time in all entries, its command beside it, and the moment that belongs to it */
    if (u[1] != 0 || fabs(u[3] - 3 * u[0]) > 1e-12) ++torn;
    if (changes > 1 && fabs(u[2] - HAND_DELAY) > 1e-9) ++torn;
  }
  __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
  pthread_join(thread, &failed);
  printf("%%d %%d %%d %%d\\n", changes, torn, backwards, failed != 0);
  return 0;
}
"""

INTERRUPTED = """
#include "hand.c"
#include <stdio.h>

static double memory[HAND_MEMORY_DOUBLES];

int main(void) {
  struct two_rates *m = (struct two_rates *)memory;
  double q[2] = {0}, v[2] = {0}, command = 1, t = 0, u[4], status, flags, age = 0, next[4];
  int code, plans, ticks;
  if (hand_init(memory, sizeof memory) || hand_tick(memory, q, v, &t, u, 0, 0, 0, 0, 0)) return 1;
  m->ticking = m->planning = 1; /* as in a handler of a signal that comes within these calls */
  plans = hand_plan(memory, q, v, &command, &t, 0, 0, 0, 0);
  code = hand_tick(memory, q, v, &t, u, &status, &flags, 0, 0, &age);
  m->ticking = m->planning = 0;
  ticks = hand_tick(memory, q, v, &t, next, 0, 0, 0, 0, 0);
  printf("%d %d %g %g %g %d ", plans, code, status, flags, u[0], age != age);
  printf("%g %d", m->z_law[0], ticks);
  return 0;
}
"""

CPP = """
#include <cmath>
#include <cstdio>
#include "hand.hpp"

int main() {
  static hand::Controller one;
  const double q[2] = {0, 0}, v[2] = {0, 0}, command = 4, late = HAND_DELAY;
  double u[4], t = 0, age = 1;
  if (one.plan(q, v, &command, &t) || one.tick(q, v, &t, u)) return 1;
  static hand::Controller copy = one;
  if (copy.tick(q, v, &late, u, nullptr, nullptr, nullptr, nullptr, &age)) return 2;
  std::printf("%g %g ", u[3], age);
  one.reset();
  if (one.tick(q, v, &late, u)) return 3;
  std::printf("%g", u[3]);
}
"""

CHANGES = 50
"""Of the plan that acts, at least."""

LINKED = """
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "left.h"
#include "right.h"

int main(void) {
  double *a = malloc(LEFT_MEMORY_BYTES), *b = malloc(RIGHT_MEMORY_BYTES), u[4], age;
  double q[2] = {0}, v[2] = {0}, command = 1, t = 0;
  int k, wrong = 0;
  if (left_init(a, LEFT_MEMORY_BYTES) || right_init(b, RIGHT_MEMORY_BYTES)) return 1;
  if (left_init(a, LEFT_MEMORY_BYTES / 2) != LEFT_BAD_MEMORY) return 1;
  for (k = 0; k < 300; ++k) {
    t = k * LEFT_PERIOD;
    v[1] = k % 13 == 0 ? NAN : k % 17 == 0 ? INFINITY : 0;
    if (k % 7 == 0) left_plan(a, q, v, &command, &t, 0, 0, 0, 0);
    if (k % 5 == 0) right_plan(b, q, v, 0, &t, 0, 0, 0, 0);
    left_tick(a, q, v, k % 11 == 0 ? 0 : &t, u, 0, 0, 0, 0, &age);
    for (int i = 0; i < 4; ++i) wrong += !(fabs(u[i]) <= 1e9);
    right_tick(b, k % 3 == 0 ? 0 : q, v, &t, u, 0, 0, 0, 0, 0);
    for (int i = 0; i < 4; ++i) wrong += !(fabs(u[i]) <= 1e9);
  }
  left_tick(0, q, v, &t, u, 0, 0, 0, 0, &age);
  for (int i = 0; i < 4; ++i) wrong += !(fabs(u[i]) <= 1e9);
  free(a);
  free(b);
  printf("%d\\n", wrong);
  return 0;
}
"""


def run_program(tmp_path, text, *projects, flags):
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(text)
    command = [*find_compiler(), "-std=gnu11", "-Wall", "-Werror", "-g", "-O1", *flags, str(source)]
    for p in projects:
        names = [p.name, *(part["name"] for part in p.manifest["parts"].values())]
        names.append(f"{p.name}_functions")
        sources = [f"{p.folder}/{name}.c" for name in names if f'"{name}.c"' not in text]
        command += [f"-I{p.folder}", *sources]
    built = subprocess.run([*command, "-lm", "-o", program], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def has_sanitizer(tmp_path, flag):
    source, program = tmp_path / "probe.c", tmp_path / "probe"
    source.write_text("int main(void) { return 0; }\n")
    command = [*find_compiler(), flag, "-pthread", str(source), "-o", str(program)]
    built = subprocess.run(command, capture_output=True).returncode == 0
    return built and subprocess.run([str(program)], capture_output=True).returncode == 0


@pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")
def test_a_class_of_cpp_owns_the_memory(tmp_path):
    project = mb.export_two_rates(two_rates(), tmp_path / "out")
    library = project.build(flags=("-O0",)).path
    source, program = tmp_path / "program.cpp", tmp_path / "program"
    source.write_text(CPP)
    for standard in ("-std=c++11", "-std=c++20"):
        command = ["g++", standard, "-Wall", "-Wextra", "-pedantic-errors", "-Werror", str(source)]
        command += [f"-I{project.folder}", str(library), f"-Wl,-rpath,{library.parent}"]
        built = subprocess.run([*command, "-o", program], capture_output=True, text=True)
        assert built.returncode == 0, built.stderr
        done = subprocess.run([str(program)], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "4 0 0")


@pytest.mark.skipif(os.name != "posix", reason="pthreads")
@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.every(2)
def test_no_plan_is_torn_between_two_threads(delay, tmp_path):
    """Plans come as fast as they can, so that slots are used again at once."""
    project = mb.export_two_rates(two_rates(delay), tmp_path / "out")
    sanitizer = "-fsanitize=thread"
    kinds = [([], 100_000)]
    kinds += [([sanitizer], 10_000)] if has_sanitizer(tmp_path, sanitizer) else []
    for flags, ticks in kinds:
        text = PROGRAM % {"least": ticks, "most": 100 * ticks, "changes": CHANGES}
        output = run_program(tmp_path, text, project, flags=[*flags, "-pthread"])
        changes, torn, backwards, failed = map(int, output.split())
        assert (torn, backwards, failed) == (0, 0, 0)
        assert changes >= CHANGES


@pytest.mark.long
def test_two_exports_live_in_one_program_and_sanitizers_find_nothing(tmp_path):
    left = mb.export_two_rates(two_rates(1), tmp_path / "left", name="left")
    right = mb.export_two_rates(two_rates(2), tmp_path / "right", name="right")
    flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    flags = [flag for flag in flags if has_sanitizer(tmp_path, flag)]
    assert run_program(tmp_path, LINKED, left, right, flags=flags) == "0\n"


def test_a_call_that_interrupts_another_one_is_safe_and_leaves_it_alone(tmp_path):
    project = mb.export_two_rates(two_rates(), tmp_path / "out")
    plans, code, status, flags, u, is_nan, ticks, after = run_program(
        tmp_path, INTERRUPTED, project, flags=[]
    ).split()
    assert (int(plans), int(code), float(status)) == (-3, BAD_INPUT, BAD_INPUT)
    assert (float(flags), float(u), int(is_nan)) == (Flag.INTERRUPTING, HELD, 1)
    assert (float(ticks), int(after)) == (2, 0), "the state counts two ticks"
