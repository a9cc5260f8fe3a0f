"""Room mjcf: to be filled."""
