"""Optimal trajectories of unknown duration, and laws that track them."""
