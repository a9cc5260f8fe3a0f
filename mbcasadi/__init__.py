"""Constrained multibody dynamics and control with CasADi and MuJoCo."""
