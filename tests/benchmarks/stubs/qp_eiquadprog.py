"""A stub of the program that times eiquadprog: it solves the problems of its file."""

import sys

import numpy as np
from solved_problems import solution

n, me, mi, count, repeats = map(int, sys.argv[3:])
sizes = [n * n, n, me * n, me, mi * n, mi]
results = []
for problem in np.fromfile(sys.argv[1]).reshape(count, sum(sizes)):
    H, g, E, e, C, c = np.split(problem, np.cumsum(sizes)[:-1])
    H, E, C = (x.reshape(-1, n, order="F") if x.size else np.zeros((0, n)) for x in (H, E, C))
    x = solution(H, g, E, -e, C, -c, np.full(mi, np.inf))
    results.append(np.concatenate([[1e-6, 0.0], x]))
np.tile(results, (repeats, 1)).tofile(sys.argv[2])
