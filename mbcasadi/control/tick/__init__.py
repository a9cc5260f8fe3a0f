"""One controller: the mechanism at an instant, and the parts of what it is made of."""
