"""`amends doctor` for Jira: does the token work."""

from __future__ import annotations

from collections.abc import Callable

from amends.spi import DoctorFinding, NotSent
from amends.spi.http import Ambiguous, HttpRequest, HttpSender
from amends_jira.options import JiraOptions

EXAMINE_SECONDS = 10.0


def examine(options: JiraOptions, sender: HttpSender, secret: Callable[[str], str]) -> list[DoctorFinding]:
    """Ask `myself`. Read-only, bounded, never raises for what the network does."""
    request = HttpRequest("GET", options.url("myself"), headers={"Authorization": options.authorization(secret)})
    try:
        answer = sender.deliver(request, timeout_seconds=EXAMINE_SECONDS)
    except (NotSent, Ambiguous) as lost:
        return [_problem(f"cannot reach `{options.base_url}`: {lost}", "check `base_url` and the network")]
    account = answer.document().get(options.person_field)
    if not answer.ok or not account:
        return [
            _problem(
                f"myself answered {answer.status}", f"put a valid token behind `{options.token}` and check `email`"
            )
        ]
    found = [DoctorFinding("ok", "jira", f"signed in to `{options.base_url}` as `{account}`")]
    if options.customer_facing:
        found.append(
            DoctorFinding("ok", "jira", "transitions and comments reach customers: each needs a person's approval")
        )
    return found


def _problem(message: str, remedy: str) -> DoctorFinding:
    return DoctorFinding("problem", "jira", message, remedy)
