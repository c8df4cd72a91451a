"""Invoices: what is owed, and in which currency it is shown."""
