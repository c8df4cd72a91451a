"""`amends doctor` for Slack: does the token work, and are the people it must write to known."""

from __future__ import annotations

from collections.abc import Callable

from amends.spi import DoctorFinding, NotSent
from amends.spi.http import Ambiguous, HttpRequest, HttpSender
from amends_slack import answers
from amends_slack.options import SlackOptions

EXAMINE_SECONDS = 10.0


def examine(options: SlackOptions, sender: HttpSender, secret: Callable[[str], str]) -> list[DoctorFinding]:
    """Ask `auth.test`. Read-only, bounded, never raises for what the network does."""
    headers = {"Authorization": f"Bearer {secret(options.token)}"}
    request = HttpRequest("POST", options.url("auth.test"), headers=headers, form={})
    try:
        answer = sender.deliver(request, timeout_seconds=EXAMINE_SECONDS).document()
    except (NotSent, Ambiguous) as lost:
        return [_problem(f"cannot reach `{options.base_url}`: {lost}", "check `base_url` and the network")]
    if answer.get("ok") is not True:
        said = answers.error_code(answer) or "no answer of Slack"
        return [_problem(f"auth.test said `{said}`", f"put a valid bot token behind `{options.token}`")]
    team, user = answer.get("team"), answer.get("user")
    found = [DoctorFinding("ok", "slack", f"signed in to `{team}` as `{user}`")]
    if not options.people:
        found.append(
            DoctorFinding(
                "warning",
                "slack",
                "`people` is empty, so corrections to `person:` places cannot be delivered",
                "map names to Slack user ids under `[adapters.slack.people]`",
            )
        )
    return found


def _problem(message: str, remedy: str) -> DoctorFinding:
    return DoctorFinding("problem", "slack", message, remedy)
