"""Amends adapter: database schema upgrades and downgrades through Alembic."""
