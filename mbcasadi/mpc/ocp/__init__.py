"""Optimal control problems on the constraint manifold, and their solution as a whole."""
