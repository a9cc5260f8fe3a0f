"""Room dynamics: to be filled."""
