"""A Function over many states: lanes of vectors, threads, NumPy in and out."""
