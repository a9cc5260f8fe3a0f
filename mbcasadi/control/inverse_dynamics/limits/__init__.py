"""Limits beside the ranges of controls, as rows of the QP, hard or soft."""
