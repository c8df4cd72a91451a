"""A client portal, or any other receiver of webhooks: it shows its readers what arrives, so each arrival is an effect.

A repeated delivery (same webhook identifier) is recognised when the setting `deduplicate` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from amends.testing.loopback.system import Route, System, Unit, marker_of
from amends.testing.loopback.wire import ApiError, Doc, Request, Response, as_doc, iso

NOTICES = "notices"


class Portal(System):
    """Receives without credentials, as webhook receivers do."""

    name = "portal"
    settings: ClassVar[Doc] = {"deduplicate": False}

    def routes(self) -> Sequence[Route]:
        """One hook per source, and what a reader sees."""
        return [
            Route("POST", "/hooks/{source}", _receive),
            Route("GET", "/notices", _list, reads=True),
        ]

    def authenticate(self, unit: Unit, request: Request) -> str:
        """Everybody may."""
        return ""

    def render_error(self, error: ApiError) -> Response:
        """`{"error": code, "message"}`."""
        return Response(error.status, {"error": error.code, "message": error.message}, error.headers)


def _receive(unit: Unit, request: Request) -> Response:
    delivery = request.headers.get("x-atlassian-webhook-identifier", "")
    if delivery and unit.setting("deduplicate") and unit.objects.peek("deliveries", delivery) is not None:
        return Response(200, {"received": True, "duplicate": True})
    key = unit.new_id("note_")
    about = as_doc(request.body.get("issue")).get("key") or request.params["source"]
    notice: Doc = {
        "id": key,
        "source": request.params["source"],
        "about": about,
        "delivery": delivery,
        "received": iso(unit.now()),
        "payload": request.payload,
    }
    unit.objects.put(NOTICES, key, notice)
    unit.objects.put("deliveries", delivery or key, {"notice": key})
    unit.effects.created("notice", f"about:{about}", key, marker_of(unit, request.body))
    return Response(200, {"received": True, "id": key})


def _list(unit: Unit, request: Request) -> Response:
    """`about=BILL-12` filters."""
    about = request.query.get("about")
    found = [notice for notice in unit.objects.all(NOTICES) if about in (None, notice["about"])]
    return Response(200, {"notices": found})
