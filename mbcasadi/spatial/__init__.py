"""Room spatial: to be filled."""
