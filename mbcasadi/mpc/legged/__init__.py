"""Legged robots: the single rigid body, gaits, and the guide between MPC and inverse dynamics."""
