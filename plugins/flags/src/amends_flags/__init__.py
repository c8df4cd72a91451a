"""Amends adapter: feature flags (Unleash admin API, flagd files)."""
