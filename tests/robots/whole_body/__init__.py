"""Robots that follow plans of the whole body."""
