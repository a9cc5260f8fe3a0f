"""One stagewise linear-quadratic problem: its recursion, its rows, the end of its tick."""
