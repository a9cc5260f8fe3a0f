"""The quadruped's generated controller in a C program: sanitizers, allocator, wild inputs."""

import subprocess

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.codegen.compiler import find_compiler

TICKS = 300
FEET = ("FL", "FR", "RL", "RR")

PROGRAM = """
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "quadruped_law.h"
#define NQ 19
#define NV 18
#define NREF %(nref)d
#define NZ %(nz)d
#define ROWS %(rows)d
#define SIZE (NQ + NV + NREF + 4)

static long calls;
void *__real_malloc(size_t n);
void *__real_calloc(size_t k, size_t n);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n) { ++calls; return __real_malloc(n); }
void *__wrap_calloc(size_t k, size_t n) { ++calls; return __real_calloc(k, n); }
void *__wrap_realloc(void *p, size_t n) { ++calls; return __real_realloc(p, n); }

int main(int argc, char **argv) {
  double *memory = malloc(QUADRUPED_LAW_MEMORY_BYTES), *in = malloc(%(ticks)d * SIZE * sizeof *in);
  double u[12], z[NZ], residual[5], status, flags;
  long seen[5] = {0}, k, i, before;
  FILE *file = fopen(argv[argc - 1], "rb");
  if (!file || fread(in, sizeof *in * SIZE, %(ticks)d, file) != %(ticks)d) return 1;
  fclose(file);
  if (quadruped_law_init(memory, QUADRUPED_LAW_MEMORY_BYTES)) return 2;
  memset(z, 0, sizeof z);
  before = calls;
  for (k = 0; k < %(ticks)d; ++k) {
    const double *q = in + k * SIZE, *v = q + NQ, *ref = v + NV, *mask = ref + NREF;
    quadruped_law_step(memory, q, v, ref, mask, z, u, z, &status, &flags, residual);
    if (!(status >= 0 && status <= 4)) return 3;
    ++seen[(int)status];
    for (i = 0; i < 12; ++i)
      if (!(u[i] >= quadruped_law_u_min[i] && u[i] <= quadruped_law_u_max[i])) return 4;
    for (i = 0; i < NZ; ++i)
      if (!(fabs(z[i]) <= (i < ROWS ? 1 : 1e6))) return 5; /* active set, then the memory */
  }
  if (calls != before) return 6;
  for (i = 0; i < 5; ++i) printf("%%ld ", seen[i]);
  free(memory);
  free(in);
  return 0;
}
"""


def wild_inputs(system, law):
    """Return (TICKS, n) inputs: near the stand, far from it, fast, and not finite."""
    rng = np.random.default_rng(5)
    stand = system.tree.keyframes["stand"]
    rows = []
    for k in range(TICKS):
        spread = 0.05 if k % 5 else 1.0
        q = np.array(system.integrate(stand, spread * rng.standard_normal(system.nv))).ravel()
        v = (0.2 if k % 4 else 20.0) * rng.standard_normal(system.nv)
        ref = law.reference_at(stand)
        mask = (rng.random(len(FEET)) < 0.8).astype(float)
        row = np.concatenate([q, v, ref, mask])
        if k % 10 == 3:
            row[rng.integers(row.size)] = rng.choice([np.nan, np.inf, -np.inf, 1e200])
        rows.append(row)
    return np.array(rows)


@pytest.fixture(scope="module")
def project_and_folder(tmp_path_factory):
    system = mb.read_mjcf(models.path("quadruped"))
    feet = [mb.Contact(name, friction=0.6, sides=4, min_force=5.0) for name in FEET]
    tasks = [mb.control.FrameTask("trunk", kp=100.0), mb.control.PostureTask(kp=20.0, weight=0.01)]
    law = mb.control.InverseDynamicsQP(system, tasks, feet, name="quadruped_law")
    folder = tmp_path_factory.mktemp("quadruped")
    project = mb.export_c(law, folder / "c")
    wild_inputs(system, law).tofile(folder / "inputs")
    sizes = {"nref": law.nref, "nz": law.z0.size, "rows": len(law.row_names), "ticks": TICKS}
    (folder / "program.c").write_text(PROGRAM % sizes)
    return project, folder


def run(project_and_folder, *flags):
    """Compile the controller with `flags`, run it over the inputs; returns counts by status."""
    project, folder = project_and_folder
    wrap = [f"-Wl,--wrap={name}" for name in ("malloc", "calloc", "realloc")]
    command = [*find_compiler(), "-std=c99", "-Wall", "-Wextra", "-Werror"]
    command += ["-Wno-unused-parameter", *flags, *wrap, f"-I{project.folder}"]
    command += [str(folder / "program.c"), f"{project.folder}/{project.name}.c"]
    built = subprocess.run([*command, "-lm", "-o", folder / "program"], capture_output=True)
    assert built.returncode == 0, built.stderr.decode()
    process = subprocess.run(
        [folder / "program", folder / "inputs"], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert not process.stderr
    return [int(count) for count in process.stdout.split()]


@pytest.mark.long
def test_it_allocates_nothing_stays_bounded_and_is_clean_whatever_comes_in(project_and_folder):
    sanitizers = "-fsanitize=address,undefined,float-cast-overflow"
    counts = run(project_and_folder, "-O0", "-g", sanitizers, "-fno-sanitize-recover=all")
    solved, _, infeasible, bad, _ = counts
    assert sum(counts) == TICKS
    assert solved > TICKS // 3
    assert infeasible > 0
    assert bad >= TICKS // 20
