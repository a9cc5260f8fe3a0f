"""Strict levels of tasks: each is met as well as the levels before it allow."""
