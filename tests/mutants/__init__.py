"""Planted faults: which share of them the tests find (`python -m mutants` in `tests`)."""
