"""Crash proof over real processes: a run loop that is killed from outside at a chosen point, and the count afterwards.

`Stage` makes a project, a loopback partner and Slack, and a zygote whose children are agents, rescuers and a naive
control. Each child announces its milestones on a line to the `Killer`, which lets it go on, or kills it there.
"""

from __future__ import annotations

from amends.testing.crash.audit import Findings, audit, contradictions, meant, states, unfolded, unmirrored
from amends.testing.crash.gaps import GAPS, Gap, GapTracker
from amends.testing.crash.killer import Child, Death, Killer, KillPlan
from amends.testing.crash.stage import Stage

__all__ = [
    "GAPS",
    "Child",
    "Death",
    "Findings",
    "Gap",
    "GapTracker",
    "KillPlan",
    "Killer",
    "Stage",
    "audit",
    "contradictions",
    "meant",
    "states",
    "unfolded",
    "unmirrored",
]
