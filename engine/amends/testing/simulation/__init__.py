"""Deterministic simulation of the whole engine: one seed is one world, with its weather, accidents and people."""

from __future__ import annotations

from amends.testing.simulation.world import Verdict, simulate

__all__ = ["Verdict", "simulate"]
