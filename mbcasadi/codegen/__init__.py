"""Room codegen: to be filled."""
