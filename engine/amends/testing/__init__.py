"""The shipped test kit: what plugin authors and Amends' own tests use to prove behaviour against real systems."""
