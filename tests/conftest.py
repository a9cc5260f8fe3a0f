"""Shared by all packages: puts `support` on the path of every test."""
