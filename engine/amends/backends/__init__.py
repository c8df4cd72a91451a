"""Backends: the implementations of the ports. Only `amends.bootstrap` builds them."""
