"""The only place that loops: it asks the core what to do, does it through ports and adapters, and records it."""
