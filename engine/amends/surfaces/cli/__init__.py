"""The command line: `amends`. Data goes to standard output, talk to standard error."""

from amends.surfaces.cli.app import main

__all__ = ["main"]
