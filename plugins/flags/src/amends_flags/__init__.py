"""Amends adapter: feature flags over the Unleash admin API, or in a flagd file."""
