"""What a controller should do: one residual a file."""
