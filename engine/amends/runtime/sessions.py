"""A session: one process's right to drive one run, under one epoch."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass
class Session:
    """Driver's data. `epoch` fences every write; `cancelled` stops calls before their first byte."""

    run_id: str
    epoch: int
    lease_until_us: int
    cancelled: threading.Event = field(default_factory=threading.Event)
    closed: bool = False
