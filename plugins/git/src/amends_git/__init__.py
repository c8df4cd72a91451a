"""Amends adapter: branches, commits, tags and draft pull requests."""
