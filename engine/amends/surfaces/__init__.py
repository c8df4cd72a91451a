"""Surfaces: the ways in. They are siblings and do not know each other."""
