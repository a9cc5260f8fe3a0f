"""Room formulation: to be filled."""
