"""The Alembic environment folder: `env.py` is run by Alembic, never imported."""
