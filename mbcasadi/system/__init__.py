"""Room system: to be filled."""
