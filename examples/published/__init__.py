"""Published benchmark mechanisms, each with its source and its reference numbers."""
