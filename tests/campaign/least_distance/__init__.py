"""Least-distance problems by the million: the solver in C, judged in extended precision.

`families` poses them, `program` solves them in C, `judge.c` reads no line of the solver's.
"""
