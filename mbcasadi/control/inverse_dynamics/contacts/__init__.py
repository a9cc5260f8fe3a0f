"""Contacts of the controller: points, soles, cones."""
