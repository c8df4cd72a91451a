"""Amends adapter: partner HTTP APIs declared in data, no Python needed."""
