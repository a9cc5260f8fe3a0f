"""The output of every controller in a tick without a solution."""
