"""A stub of Crocoddyl on a trot: each iterate is the guess; next states are in `expected.npy`."""

import sys
from pathlib import Path

import numpy as np

tree, problem, ticks, results, iterations, repeats = sys.argv[1:]
assert int(Path(tree).read_text().split()[0]) > 0
assert int(repeats) > 0
head, state, control, *_ = Path(problem).read_text().splitlines()
N, _, _, _, feet, count, rows = (int(float(word)) for word in head.split())
nv, nu = len(state.split()) // 2, len(control.split())
nx, guess = 2 * nv + 1, np.fromfile(ticks).reshape(count, -1)
size = (N + 1) * nx + N * (nu + rows)
assert guess.shape[1] == nx + size + (N + 1) * (nx + 2 * feet)
plans = np.repeat(guess[:, None, nx : nx + size], int(iterations), axis=1)
times = np.tile(1e-6 * np.arange(1.0, int(iterations) + 1)[:, None], (count, 1, 1))
answers = np.concatenate([times, np.ones_like(times), plans], axis=2)
expected = np.load(Path(results).with_name("expected.npy"))
np.concatenate([answers.ravel(), expected.ravel()]).tofile(results)
