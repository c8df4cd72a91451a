"""Amends: a policy-as-code recovery engine for AI-agent runs."""

__version__ = "0.1.0"
