"""Quadratic programs: whitening, solvers, friction cones, residuals, and a guard for inputs."""
