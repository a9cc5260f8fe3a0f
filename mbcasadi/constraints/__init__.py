"""Room constraints: to be filled."""
