"""What `amends doctor` asks about a partner: does the secret resolve, does anybody answer. Read-only."""

from __future__ import annotations

from collections.abc import Callable

from amends.spi import DoctorFinding, NotSent
from amends.spi.http import Ambiguous, HttpRequest, HttpSender
from amends_http.settings import HttpSettings

_TIMEOUT_SECONDS = 5.0


def examine(
    adapter: str, settings: HttpSettings, secret: Callable[[str], str], sender: HttpSender
) -> list[DoctorFinding]:
    """One finding about the credential, one about the partner's answer."""
    subject = f"adapters.{adapter}"
    signing = settings.signing
    if signing is None:
        return [_reach(subject, settings, {}, sender)]
    try:
        headers = signing.headers(secret(signing.secret))
    except Exception:  # noqa: BLE001 - a reference that does not resolve is the finding
        remedy = f"set what `{signing.secret}` refers to"
        return [DoctorFinding("problem", subject, f"the secret `{signing.secret}` does not resolve", remedy)]
    return [
        DoctorFinding("ok", subject, f"the secret `{signing.secret}` resolves"),
        _reach(subject, settings, headers, sender),
    ]


def _reach(subject: str, settings: HttpSettings, headers: dict[str, str], sender: HttpSender) -> DoctorFinding:
    request = HttpRequest("GET", settings.base_url, headers=headers, body="any")
    try:
        answer = sender.deliver(request, timeout_seconds=_TIMEOUT_SECONDS)
    except (NotSent, Ambiguous) as trouble:
        return DoctorFinding(
            "problem", subject, f"no answer: {trouble}", "check `base_url`, the network and the certificate"
        )
    if answer.status in {401, 403}:
        return DoctorFinding("problem", subject, f"{request.name} answered {answer.status}", "check the credential")
    return DoctorFinding("ok", subject, f"{request.name} answers")
