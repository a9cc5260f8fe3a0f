"""Robots that are sent where their limits end: stops of joints, and bodies that meet."""
