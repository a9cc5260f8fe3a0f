"""Two installed exports in one consumer: static and shared, C and C++, threads."""

import pytest
from programs import require, run

LISTS = """
cmake_minimum_required(VERSION 3.15)
project(consumer C CXX)
find_package(four_bar REQUIRED)
find_package(lqr REQUIRED)
find_package(Threads REQUIRED)
foreach(kind "" "_shared")
  foreach(language c cpp)
    add_executable(main_${language}${kind} main_${language}.${language})
    target_link_libraries(main_${language}${kind}
      four_bar::four_bar${kind} lqr::lqr${kind} Threads::Threads)
  endforeach()
endforeach()
"""
# Each thread runs both controllers on memory of its own; all must end alike.
PROGRAM = """
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "four_bar.h"
#include "lqr.h"
static double u[2][FOUR_BAR_U_SIZE + LQR_U_SIZE];
static void *work(void *place) {
  double a[FOUR_BAR_MEMORY_DOUBLES], b[LQR_MEMORY_DOUBLES], z[FOUR_BAR_Z_SIZE], y[LQR_Z_SIZE];
  double *to = (double *)place, status;
  int k;
  if (four_bar_init(a, sizeof a) || lqr_init(b, sizeof b)) return 0;
  memcpy(z, four_bar_z0, sizeof z);
  memcpy(y, lqr_z0, sizeof y);
  for (k = 0; k < 20000; ++k) {
    double q[FOUR_BAR_Q_SIZE] = {0.1, 0.2, 0.3}, p[LQR_Q_SIZE] = {0.1, 0.2, 0.3, 0.4};
    q[0] += 1e-5 * k;
    four_bar_step(a, q, 0, 0, 0, z, to, z, &status, 0, 0);
    lqr_step(b, p, 0, 0, y, to + FOUR_BAR_U_SIZE, y, &status, 0, 0);
  }
  return place;
}
int main(void) {
  pthread_t threads[2];
  void *done[2];
  int i;
  for (i = 0; i < 2; ++i) pthread_create(threads + i, 0, work, u[i]);
  for (i = 0; i < 2; ++i) pthread_join(threads[i], done + i);
  if (!done[0] || !done[1] || memcmp(u[0], u[1], sizeof u[0])) return 1;
  printf("%.17g %.17g\\n", u[0][0], u[0][FOUR_BAR_U_SIZE]);
  return 0;
}
"""


@pytest.fixture(scope="module")
def consumer(recorded, tmp_path_factory):
    cmake = require("cmake", "cmake")
    folder = tmp_path_factory.mktemp("cmake")
    for name in ("four_bar", "lqr"):
        build = folder / f"build_{name}"
        options = (f"-D{name.upper()}_SHARED=ON", "-DCMAKE_POSITION_INDEPENDENT_CODE=ON")
        run(cmake, "-S", recorded(name).project.folder, "-B", build, *options)
        run(cmake, "--build", build)
        run(cmake, "--install", build, "--prefix", folder / "prefix")
    own = folder / "consumer"
    own.mkdir()
    (own / "CMakeLists.txt").write_text(LISTS)
    for language in ("c", "cpp"):
        (own / f"main_{language}.{language}").write_text(PROGRAM)
    run(cmake, "-S", own, "-B", own / "build", f"-DCMAKE_PREFIX_PATH={folder / 'prefix'}")
    run(cmake, "--build", own / "build")
    return own / "build"


def test_static_and_shared_c_and_cpp_give_the_same_control(consumer):
    kinds = ("main_c", "main_cpp", "main_c_shared", "main_cpp_shared")
    answers = {run(f"./{kind}", cwd=consumer) for kind in kinds}
    assert len(answers) == 1
    assert float(answers.pop().split()[0]) != 0
