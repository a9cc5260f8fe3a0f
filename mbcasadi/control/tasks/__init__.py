"""Tasks: desired motions of a controller, one residual per file."""
