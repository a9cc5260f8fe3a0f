"""Room control: to be filled."""
