"""Amends adapter: feature flags over the Unleash admin API."""
