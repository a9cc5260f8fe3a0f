"""Legged robots that stand, move and lift a foot by inverse dynamics, in MuJoCo."""
