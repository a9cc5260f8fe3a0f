"""Runs and campaigns as tables, JSON and one HTML page."""
