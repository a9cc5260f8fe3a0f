"""Steps on the constraint manifold, with derivatives by implicit rules."""
