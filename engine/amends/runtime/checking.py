"""Checking: a run's success condition, asked in bounded time. Whatever goes wrong is `unknown`, which never releases
(rule 27).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from amends.runtime.flights import CALL_SPARE_SECONDS, Flights, describe, landed, shortened
from amends.runtime.kit import Kit
from amends.runtime.places import NoPlace, Seat
from amends.spi.hookspecs import Check, CheckAnswer

LONGEST_CHECK_SECONDS = 600.0  # of a plugin's check; a configured one says its own time


@dataclass(frozen=True)
class Checks:
    """Asks the checks of plugins and of the project. One that hangs is asked twice, by whichever runs, and no more."""

    kit: Kit
    flights: Flights

    def ask(self, name: str, run_id: str) -> tuple[CheckAnswer, str]:
        """The answer and its words, without secrets."""
        check = self.kit.checks.get(name)
        if check is None:
            return "unknown", f"no check `{name}` is configured"
        seconds = self.kit.check_seconds.get(name, LONGEST_CHECK_SECONDS)
        seat = Seat(f"check {name}", f"check {name}", seconds + CALL_SPARE_SECONDS)
        flight = self.flights.launch(lambda: self._said(check, run_id), f"check-{name}", seat)
        try:
            return landed(flight, seat)
        except NoPlace as full:
            return "unknown", str(full)
        except TimeoutError:
            return "unknown", f"no answer within {seconds:g} s"
        except Exception as error:  # noqa: BLE001 - it ended otherwise, as by `sys.exit`
            return "unknown", describe(error, self.kit.secrets)

    def _said(self, check: Check, run_id: str) -> tuple[CheckAnswer, str]:
        try:
            answer, detail = check.ask(run_id)
            if answer not in get_args(CheckAnswer):
                return "unknown", "the check answered none of passed, not_passed, unknown"
            return answer, shortened(str(detail), self.kit.secrets)
        except Exception as error:  # noqa: BLE001 - a check that breaks has not passed
            return "unknown", describe(error, self.kit.secrets)
