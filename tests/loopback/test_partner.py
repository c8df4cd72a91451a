"""The partner's API: its objects, undo steps, keys, tenants, carrier instructions and 202 exports."""

from __future__ import annotations

import threading
import time

import pytest

RESERVATION = {"sku": "A-1", "quantity": 2, "order": "o-1", "metadata": {"marker": "m-1"}}
ADJUSTMENT = {"order": "o-1", "amount_minor": -500, "currency": "EUR"}
CARRIER = "/v1/orders/o-1/carrier-instructions"
ADDRESS = {"address": {"line1": "1 Road"}, "service": "express"}


def test_a_reservation_is_held_and_released_once(partner):
    """The second release is a conflict with its own code."""
    created = partner("POST", "/v1/reservations", RESERVATION)
    assert (created.status, created.json["status"], created.json["account"]) == (201, "held", "acct_main")
    path = f"/v1/reservations/{created.json['id']}"
    assert partner("POST", f"{path}/release").json["status"] == "released"
    again = partner("POST", f"{path}/release")
    assert (again.status, again.json["error"]["code"]) == (409, "already_released")
    assert partner("GET", path).json["status"] == "released"
    (effect,) = partner.system.effects()
    assert (effect["kind"], effect["marker"], effect["state"]) == ("reservation", "m-1", "removed")


@pytest.mark.parametrize(
    ("status", "step", "expected"),
    [
        ("queued", "void", 200),
        ("settling", "void", "already_settling"),
        ("settled", "void", "already_settling"),
        ("queued", "reverse", "not_settling"),
        ("settling", "reverse", 200),
        ("settled", "reverse", 200),
    ],
)
def test_which_undo_an_adjustment_has_depends_on_how_far_it_is(partner, status, step, expected):
    """Void while queued, reverse once it settles."""
    key = partner("POST", "/v1/adjustments", ADJUSTMENT).json["id"]
    if status != "queued":
        partner.system.control("settle", id=key, status=status)
    answer = partner("POST", f"/v1/adjustments/{key}/{step}")
    assert (answer.status if answer.status == 200 else answer.json["error"]["code"]) == expected
    assert partner.system.count("adjustment") == (0 if expected == 200 else 1)


def test_a_success_can_be_revoked_later_by_the_provider(partner):
    """An adjustment that fails after all is no longer there."""
    key = partner("POST", "/v1/adjustments", ADJUSTMENT).json["id"]
    partner.system.control("set_status", collection="adjustments", id=key, status="failed")
    assert partner("GET", f"/v1/adjustments/{key}").json["status"] == "failed"
    assert partner.system.count("adjustment") == 0


@pytest.mark.parametrize(
    ("path", "body", "step"),
    [
        ("/v1/submissions", {"order": "o-1", "kind": "approval"}, "cancel"),
        ("/v1/notifications", {"order": "o-1", "message": "late"}, None),
        ("/v1/reports", {"subject": "o-1"}, None),
    ],
)
def test_other_collections_have_the_same_shape(partner, path, body, step):
    """Create, read, find by metadata; notifications and reports have no undo."""
    created = partner("POST", path, {**body, "metadata": {"run": "r-7"}})
    assert created.status == 201
    (found,) = partner("GET", f"{path}?metadata.run=r-7").json["data"]
    assert found == partner("GET", f"{path}/{created.json['id']}").json
    undone = partner("POST", f"{path}/{created.json['id']}/{step or 'cancel'}")
    assert undone.status == (200 if step else 404)


def test_a_report_costs_a_fee(partner):
    """A paid call: the content comes back, and the fee."""
    report = partner("POST", "/v1/reports", {"subject": "o-1"}).json
    assert (report["fee_minor"], report["content"]) == (250, "report on o-1")


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({"sku": "A", "order": "o"}, "parameter_missing", "quantity"),
        ({"sku": "A", "order": "o", "quantity": 0}, "parameter_invalid", "quantity"),
        ({"sku": "A", "order": "o", "quantity": "2"}, "parameter_invalid", "quantity"),
        ({"sku": "", "order": "o", "quantity": 2}, "parameter_missing", "sku"),
    ],
)
def test_invalid_parameters_are_named(partner, body, code, param):
    """422 says which."""
    answer = partner("POST", "/v1/reservations", body)
    error = answer.json["error"]
    assert (answer.status, error["code"], error["param"]) == (422, code, param)


def test_a_list_is_paged_from_the_newest(partner):
    """`limit`, `has_more`, `starting_after`."""
    keys = [partner("POST", "/v1/reservations", RESERVATION).json["id"] for _ in range(5)][::-1]
    first = partner("GET", "/v1/reservations?limit=2").json
    assert ([doc["id"] for doc in first["data"]], first["has_more"]) == (keys[:2], True)
    rest = partner("GET", f"/v1/reservations?limit=10&starting_after={keys[1]}").json
    assert ([doc["id"] for doc in rest["data"]], rest["has_more"]) == (keys[2:], False)


def test_stock_runs_out_and_comes_back(partner):
    """A reservation takes from stock while it is held."""
    partner.system.configure(stock={"A-1": 3})
    key = partner("POST", "/v1/reservations", RESERVATION).json["id"]
    assert partner("POST", "/v1/reservations", RESERVATION).json["error"]["code"] == "out_of_stock"
    partner("POST", f"/v1/reservations/{key}/release")
    assert partner("POST", "/v1/reservations", RESERVATION).status == 201


def test_tenants_do_not_see_each_other(partner):
    """Another account's object does not exist."""
    key = partner("POST", "/v1/reservations", RESERVATION).json["id"]
    other = type(partner)(partner.system, "Bearer other-token")
    assert other("GET", f"/v1/reservations/{key}").status == 404
    assert other("POST", f"/v1/reservations/{key}/release").status == 404
    assert other("GET", "/v1/reservations").json["data"] == []


@pytest.mark.parametrize("credential", ["", "Bearer wrong"])
def test_a_credential_is_needed_and_never_logged(partner, credential):
    """401, and the log keeps a digest at most."""
    anonymous = type(partner)(partner.system, credential)
    assert anonymous("POST", "/v1/reservations", RESERVATION).status == 401
    partner("POST", "/v1/reservations", RESERVATION)
    rows = partner.system.requests()
    assert "partner-token" not in str(rows)
    assert rows[1]["authorization"].startswith("Bearer sha256:")


def test_the_same_key_and_body_are_answered_from_the_store(partner):
    """One effect, the same answer, marked as replayed."""
    key = {"Idempotency-Key": "k-1"}
    first, second = (partner("POST", "/v1/reservations", RESERVATION, headers=key) for _ in range(2))
    assert first.raw == second.raw
    assert (first.headers.get("Idempotent-Replayed"), second.headers["Idempotent-Replayed"]) == (None, "true")
    assert partner.system.count("reservation") == 1
    assert [row["idempotency_key"] for row in partner.system.requests()] == ["k-1", "k-1"]


def test_the_same_key_with_another_body_is_an_error(partner):
    """And nothing is done."""
    key = {"Idempotency-Key": "k-1"}
    partner("POST", "/v1/reservations", RESERVATION, headers=key)
    answer = partner("POST", "/v1/reservations", {**RESERVATION, "quantity": 3}, headers=key)
    assert (answer.status, answer.json["error"]["type"]) == (400, "idempotency_error")
    assert partner.system.count("reservation") == 1


def test_a_concurrent_use_of_a_key_is_a_conflict(partner):
    """While the first is being handled, the second is refused; afterwards it is replayed."""
    partner.system.arm("delay_before_commit", path="/v1/reservations", seconds=0.4)
    key = {"Idempotency-Key": "k-1"}
    first = threading.Thread(target=partner, args=("POST", "/v1/reservations", RESERVATION), kwargs={"headers": key})
    first.start()
    time.sleep(0.15)
    answer = partner("POST", "/v1/reservations", RESERVATION, headers=key)
    assert (answer.status, answer.json["error"]["code"]) == (409, "idempotency_key_in_use")
    first.join()
    assert partner("POST", "/v1/reservations", RESERVATION, headers=key).headers["Idempotent-Replayed"] == "true"
    assert partner.system.count("reservation") == 1


@pytest.mark.parametrize("settings", [{"idempotency": False}, {"key_ttl_s": 0.0}])
def test_without_keys_or_past_their_time_the_same_post_makes_two(partner, settings):
    """Keys can be switched off, and they end."""
    partner.system.configure(**settings)
    for _ in range(2):
        partner("POST", "/v1/reservations", RESERVATION, headers={"Idempotency-Key": "k-1"})
        time.sleep(0.01)
    assert partner.system.count("reservation") == 2


def test_a_validation_error_leaves_the_key_usable_and_a_business_refusal_does_not(partner):
    """422 is not stored; 409 is."""
    partner.system.configure(stock={"A-1": 1})
    key = {"Idempotency-Key": "k-1"}
    assert partner("POST", "/v1/reservations", {"sku": "A-1"}, headers=key).status == 422
    assert partner("POST", "/v1/reservations", RESERVATION, headers=key).status == 409
    partner.system.configure(stock={})
    replayed = partner("POST", "/v1/reservations", RESERVATION, headers=key)
    assert (replayed.status, replayed.headers["Idempotent-Replayed"]) == (409, "true")


def test_carrier_instructions_are_set_as_a_whole_with_a_version(partner):
    """Setting back what was there before takes the effect away; the history shows every step."""
    partner.system.foreign("PUT", CARRIER, ADDRESS, actor="dispatcher")
    before = partner("GET", CARRIER)
    changed = partner("PUT", CARRIER, {"address": {"line1": "2 Road"}, "service": "slow"})
    assert (before.headers["ETag"], changed.headers["ETag"]) == ('"v1"', '"v2"')
    assert partner.system.count("carrier_instructions") == 1
    partner("PUT", CARRIER, ADDRESS, headers={"If-Match": '"v2"'})
    assert partner.system.count("carrier_instructions") == 0
    assert [entry["by"] for entry in partner("GET", f"{CARRIER}/history").json["data"]] == [
        "dispatcher",
        "agent",
        "agent",
    ]


def test_carrier_instructions_can_be_taken_away_again(partner):
    """Where there were none before, DELETE restores that."""
    partner("PUT", CARRIER, ADDRESS)
    assert partner("DELETE", CARRIER).status == 204
    assert partner("GET", CARRIER).status == 404
    assert partner.system.count("carrier_instructions") == 0


def test_carrier_instructions_are_refused_with_a_reason(partner):
    """Missing address, changed since, collected already."""
    assert partner("PUT", CARRIER, {"service": "x"}).json["error"]["code"] == "address_missing"
    partner("PUT", CARRIER, ADDRESS)
    stale = partner("PUT", CARRIER, ADDRESS, headers={"If-Match": '"v9"'})
    assert (stale.status, stale.json["error"]["code"]) == (412, "precondition_failed")
    partner.system.control("lock_carrier", order="o-1")
    locked = partner("PUT", CARRIER, ADDRESS)
    assert (locked.status, locked.json["error"]["code"]) == (409, "carrier_locked")


def test_an_export_is_accepted_runs_and_is_done(partner):
    """202 with an operation; the effect exists from the moment it is done, polled or not."""
    partner.system.configure(export_seconds=0.2)
    accepted = partner("POST", "/v1/exports", {"name": "ledger", "metadata": {"marker": "m-9"}})
    url = accepted.headers["Location"]
    assert (accepted.status, accepted.json["operation"]["status"]) == (202, "running")
    assert partner("GET", url).json["status"] == "running"
    time.sleep(0.25)
    (export,) = partner("GET", "/v1/exports?metadata.marker=m-9").json["data"]
    assert partner("GET", url).json["export"] == export["id"]
    assert partner("DELETE", f"/v1/exports/{export['id']}").status == 204
    assert partner.system.count("export", "removed") == 1


@pytest.mark.parametrize("absolute", [True, False])
def test_an_operation_is_named_relatively_or_absolutely(partner, absolute):
    """Location may be either, as in the wild."""
    partner.system.configure(absolute_locations=absolute)
    location = partner("POST", "/v1/exports", {"name": "ledger"}).headers["Location"]
    assert location.startswith(partner.system.url if absolute else "/v1/operations/")


@pytest.mark.parametrize(("end", "status"), [("failed", 200), ("expired", 404)])
def test_an_export_can_fail_or_be_forgotten(partner, end, status):
    """The operation ends as told, without an effect."""
    partner.system.configure(export_seconds=3600)
    operation = partner("POST", "/v1/exports", {"name": "ledger"}).json["operation"]
    partner.system.control("set_operation", id=operation["id"], status=end)
    answer = partner("GET", operation["url"])
    assert answer.status == status
    assert answer.json["error"]["code"] == {"failed": "export_failed", "expired": "operation_expired"}[end]
    assert partner.system.counts() == {}
