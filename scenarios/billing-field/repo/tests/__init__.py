"""The tests of billing."""
