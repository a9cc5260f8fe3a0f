"""Legged robots: the single rigid body, gaits, and the planner between MPC and inverse dynamics."""
