"""Room plant: to be filled."""
