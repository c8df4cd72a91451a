"""Ports: the small protocols the runtime needs. Each docstring is the contract every implementation must keep."""
