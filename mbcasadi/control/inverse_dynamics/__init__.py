"""Inverse dynamics as a condensed QP."""
