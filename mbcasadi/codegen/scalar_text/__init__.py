"""Scalar Functions in C: their operations as data, and printers of them."""
