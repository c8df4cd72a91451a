"""Users' own fault injection: their workflow on their sandbox adapters, a fault in each world (docs/inject.md)."""
