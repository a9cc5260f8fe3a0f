"""Room model: to be filled."""
