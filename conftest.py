"""The fixtures of the independent systems, for every test of the repository and of the plugins."""

pytest_plugins = ["systems.fixtures"]
