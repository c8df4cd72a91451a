"""Scenarios: scripted runs, told trouble, and the end state that must hold at the systems' side."""
