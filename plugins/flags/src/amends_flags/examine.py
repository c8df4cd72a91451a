"""What `amends doctor` asks about the flag server: the credential, the project, the environment. Read-only."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from amends.spi import DoctorFinding, NotSent
from amends.spi.http import Ambiguous, HttpRequest, HttpSender
from amends_flags.options import FlagOptions

_TIMEOUT_SECONDS = 5.0


def examine(options: FlagOptions, secret: Callable[[str], str], sender: HttpSender) -> list[DoctorFinding]:
    """One finding: whether the project's flags can be read with this credential."""
    subject = "adapters.flags"
    try:
        token = secret(options.token)
    except Exception:  # noqa: BLE001 - a reference that does not resolve is the finding
        remedy = f"set what `{options.token}` refers to"
        return [DoctorFinding("problem", subject, f"the secret `{options.token}` does not resolve", remedy)]
    path = f"/api/admin/projects/{quote(options.project, safe='')}/features"
    request = HttpRequest("GET", options.base_url + path, headers={"Authorization": token})
    try:
        answer = sender.deliver(request, timeout_seconds=_TIMEOUT_SECONDS)
    except (NotSent, Ambiguous) as trouble:
        return [DoctorFinding("problem", subject, f"no answer: {trouble}", "check `base_url` and the network")]
    if not answer.ok:
        remedy = "check `token` (an admin API token) and `project`"
        return [DoctorFinding("problem", subject, f"{request.name} answered {answer.status}", remedy)]
    return [
        DoctorFinding(
            "ok", subject, f"the flags of `{options.project}` can be read; `{options.flag_environment}` is ours"
        )
    ]
