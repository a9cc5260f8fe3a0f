"""Shared by all rooms: puts `support` on the path of every test."""
