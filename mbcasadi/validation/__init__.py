"""Room validation: to be filled."""
