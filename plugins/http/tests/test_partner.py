"""The ready contracts against a partner over real sockets: effects are counted at the partner's own side."""

from __future__ import annotations

import pytest

from amends.core.registration import refusals
from amends.spi import Accepted, NotSent, Refused
from amends.spi.http import Ambiguous

RESERVE = {"order": "1234", "sku": "bolt", "quantity": 3}
ADJUST = {"order": "1234", "amount_minor": -500, "currency": "EUR"}
ADDRESS = {"line1": "1 High St"}


def test_every_ready_contract_may_be_registered(shelf):
    """Each ready contract is complete: nothing consequential without a way back or an outbox."""
    assert {name: refusals(c.contract) for name, c in shelf.capabilities.items() if refusals(c.contract)} == {}
    assert len(shelf.capabilities) == 7


def test_a_reservation_is_made_with_key_and_marker_and_found_by_both_ways(partner, driver):
    """One POST carries key and marker; the probe finds it by list, also without its reference."""
    reserve = driver("reserve_inventory", **RESERVE)
    done = reserve.do()
    assert done.reference.startswith("res_")
    assert done.output["status"] == "held"
    [post] = partner.requests("POST")
    assert post["idempotency_key"] == "key-act-1"
    assert next(iter(post["body"])) == "metadata"
    assert post["body"]["metadata"] == {"amends_action": "act-1"}
    assert post["body"]["quantity"] == 3
    assert reserve.probe().seen == "applied"
    reserve.reference = ""
    found = reserve.probe()
    assert (found.seen, found.reference, found.state["status"]) == ("applied", done.reference, "held")


def test_release_is_verified_by_a_separate_read(partner, driver):
    """Undo is one POST; a GET after it says that the effect is gone."""
    reserve = driver("reserve_inventory", **RESERVE)
    reserve.do()
    reserve.undo("release")
    assert reserve.verify().seen == "absent"
    assert partner.count("reservation") == 0
    methods = [(row["method"], row["path"].rsplit("/", 1)[-1]) for row in partner.requests()]
    assert methods.index(("POST", "release")) < len(methods) - 1
    assert methods[-1][0] == "GET"
    assert len(partner.requests("POST")) == 2


@pytest.mark.parametrize("how", ["fin", "rst", "cut_body"])
def test_a_lost_answer_is_ambiguous_sent_once_and_found(partner, driver, how):
    """The partner commits and the line breaks: no resend, and the probe finds the effect by our marker."""
    partner.arm("drop_after_commit", method="POST", how=how)
    reserve = driver("reserve_inventory", **RESERVE)
    with pytest.raises(Ambiguous):
        reserve.do()
    assert len(partner.requests("POST")) == 1
    assert reserve.probe().seen == "applied"


def test_a_time_out_is_ambiguous_and_the_effect_is_found(partner, driver):
    """The partner answers later than we wait."""
    partner.arm("drop_after_commit", method="POST", how="never_answer", hold_s=2)
    reserve = driver("reserve_inventory", **RESERVE)
    reserve.timeout_seconds = 0.3
    with pytest.raises(Ambiguous) as lost:
        reserve.do()
    assert lost.value.code == "timeout"
    reserve.timeout_seconds = 3
    assert reserve.probe().seen == "applied"


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("error_after_commit", {"status": 500}),
        ("error_after_commit", {"status": 504, "form": "html"}),
        ("html_answer", {}),
        ("empty_answer", {}),
    ],
)
def test_an_odd_answer_after_commit_is_ambiguous(partner, driver, kind, options):
    """5xx, a gateway's page with 200 and an empty 200 prove nothing."""
    partner.arm(kind, method="POST", **options)
    reserve = driver("reserve_inventory", **RESERVE)
    with pytest.raises(Ambiguous):
        reserve.do()
    assert reserve.probe().seen == "applied"
    assert partner.count("reservation") == 1


def test_the_same_key_again_does_not_reserve_twice(partner, driver):
    """A resend of one generation is one effect: same key, byte-identical body (field case A-17)."""
    partner.arm("drop_after_commit", method="POST")
    reserve = driver("reserve_inventory", **RESERVE)
    with pytest.raises(Ambiguous):
        reserve.do()
    assert reserve.do().reference.startswith("res_")
    first, second = partner.requests("POST")
    assert first["body"] == second["body"]
    assert partner.count("reservation") == 1


def test_a_business_refusal_is_refused_with_the_partners_code(partner, driver):
    """Out of stock: nothing changed, and the same request is not worth sending again."""
    partner.configure(stock={"bolt": 1})
    reserve = driver("reserve_inventory", **RESERVE)
    with pytest.raises(Refused) as no:
        reserve.do()
    assert (no.value.code, no.value.again) == ("out_of_stock", False)
    assert reserve.probe().seen == "absent"


def test_a_rate_limit_may_be_sent_again_later(partner, driver):
    """429 with Retry-After is a refusal of this moment."""
    partner.arm("refuse", method="POST", status=429, headers={"Retry-After": "2"})
    with pytest.raises(Refused) as no:
        driver("reserve_inventory", **RESERVE).do()
    assert (no.value.again, no.value.retry_after_seconds) == (True, 2.0)


@pytest.mark.parametrize("code", ["idempotency_key_in_use", "something_new"])
def test_a_conflict_that_may_be_with_ourselves_is_ambiguous(partner, driver, code):
    """A key in use, or a conflict no rule names, may mean that our first try is at work (field case K-01)."""
    partner.arm("refuse", method="POST", status=409, code=code)
    with pytest.raises(Ambiguous):
        driver("reserve_inventory", **RESERVE).do()


def test_a_dead_partner_was_not_sent(driver, adapter):
    """The connection is refused: provably nothing left."""
    reserve = driver("reserve_inventory", **RESERVE)
    reserve.capability = adapter("http://127.0.0.1:9").capabilities["partner.reserve_inventory"]
    with pytest.raises(NotSent):
        reserve.capability.do(reserve.call())
    assert reserve.probe().seen == "inconclusive"


def test_nothing_is_sent_when_no_longer_wanted(partner, driver):
    """The last check comes before the first byte."""
    reserve = driver("reserve_inventory", **RESERVE)
    with pytest.raises(NotSent):
        reserve.capability.do(reserve.call(still_wanted=lambda: False))
    assert partner.requests() == []


def test_an_undo_of_what_is_already_gone_is_no_error(partner, driver):
    """Somebody released it, or the thing is unknown: the wanted state holds, and the separate read says so."""
    reserve = driver("reserve_inventory", **RESERVE)
    reserve.do()
    partner.foreign("POST", f"/v1/reservations/{reserve.reference}/release")
    reserve.undo("release")
    assert reserve.verify().seen == "absent"
    reserve.reference = "res_999999"
    reserve.capability.undo(reserve.call("release", undo="undo-2"))


def test_an_undo_that_lies_is_seen_by_the_verification(partner, driver):
    """The partner says released and keeps it: the verification still sees it."""
    partner.arm("answer_without_commit", path="*/release")
    reserve = driver("reserve_inventory", **RESERVE)
    reserve.do()
    reserve.undo("release")
    assert reserve.verify().seen == "applied"


def test_a_lost_answer_of_the_undo_is_ambiguous_and_verified(partner, driver):
    """The release committed; its answer did not arrive."""
    partner.arm("drop_after_commit", path="*/release")
    reserve = driver("reserve_inventory", **RESERVE)
    reserve.do()
    with pytest.raises(Ambiguous):
        reserve.undo("release")
    assert reserve.verify().seen == "absent"


def test_two_effects_of_one_call_are_counted(partner, driver):
    """The partner made two: the probe names both, so that one can be taken back."""
    partner.arm("make_two", method="POST", path="/v1/reservations")
    reserve = driver("reserve_inventory", **RESERVE)
    reserve.do()
    seen = reserve.probe()
    assert seen.seen == "many"
    assert len(set(seen.twins)) == 2
    twin = next(reference for reference in seen.twins if reference != reserve.reference)
    other = driver("reserve_inventory", "act-1", **RESERVE)
    other.action_id = "twin-1"
    other.reference = twin
    assert other.probe().seen == "applied"
    other.undo("release", undo="undo-2")
    assert other.verify().seen == "absent"
    assert reserve.probe().seen == "applied"


def test_a_twin_that_is_still_there_does_not_hide_a_verified_undo(partner, driver):
    """The first of two is released: it is gone, and the twin is still reported as one that bears our marker."""
    partner.arm("make_two", method="POST", path="/v1/reservations")
    reserve = driver("reserve_inventory", **RESERVE)
    reserve.do()
    reserve.undo("release")
    assert reserve.verify().seen == "absent"
    seen = reserve.probe()
    assert (seen.seen, seen.reference) == ("many", reserve.reference)
    assert reserve.reference not in seen.twins


def test_a_list_is_read_to_its_end(partner, driver):
    """Our reservation lies on the third page of a list that ignores nothing but is long."""
    reserve = driver("reserve_inventory", **RESERVE)
    reserve.do()
    reserve.reference = ""
    for number in range(205):
        metadata = {"amends_action": f"other-{number}"}
        partner.foreign(
            "POST",
            "/v1/reservations",
            {"order": "9", "sku": "x", "quantity": 1, "metadata": metadata},
            account="acct_main",
        )
    assert reserve.probe().seen == "applied"


def test_a_probe_without_an_answer_is_inconclusive(partner, driver):
    """A read that fails proves nothing."""
    reserve = driver("reserve_inventory", **RESERVE)
    reserve.do()
    partner.arm("refuse", method="reads", status=503)
    assert reserve.probe().seen == "inconclusive"


@pytest.mark.parametrize(
    ("status", "rung", "end"),
    [("queued", "void", "voided"), ("settling", "reverse", "reversed"), ("settled", "reverse", "reversed")],
)
def test_the_rung_follows_the_probed_state(partner, driver, status, rung, end):
    """A queued adjustment is voided, a settling one reversed; each rung has its own authority."""
    adjust = driver("queue_adjustment", **ADJUST)
    adjust.do()
    if status != "queued":
        partner.control("settle", id=adjust.reference, status=status)
    seen = adjust.probe()
    contract = adjust.capability.contract
    fitting = [a for a in contract.compensation if all(seen.state[k] in v for k, v in a.when.items())]
    assert [a.name for a in fitting] == [rung, "finance_review"]
    assert contract.undo_action_name(fitting[0]) == f"payment.adjustment.{rung}"
    adjust.undo(rung)
    assert (adjust.verify().seen, adjust.verify().state["status"]) == ("absent", end)


def test_a_void_that_comes_too_late_is_refused(partner, driver):
    """The adjustment began to settle between the probe and the void: nothing changed, the next rung is for it."""
    adjust = driver("queue_adjustment", **ADJUST)
    adjust.do()
    observed = adjust.probe()
    partner.control("settle", id=adjust.reference)
    with pytest.raises(Refused) as no:
        adjust.capability.undo(adjust.call("void", observed))
    assert no.value.code == "already_settling"
    assert adjust.probe().state["status"] == "settling"


def test_a_success_that_the_provider_revokes_reads_as_gone(partner, driver):
    """An adjustment that fails afterwards is not there any more."""
    adjust = driver("queue_adjustment", **ADJUST)
    adjust.do()
    partner.control("set_status", collection="adjustments", id=adjust.reference, status="failed")
    assert adjust.probe().seen == "absent"


def test_carrier_instructions_are_restored_field_by_field(partner, driver):
    """The before-image comes back, over our own version only."""
    path = "/v1/orders/1234/carrier-instructions"
    partner.foreign("PUT", path, {"address": {"line1": "Old Rd"}, "service": "express"}, account="acct_main")
    carrier = driver("set_carrier_instructions", order="1234", address=ADDRESS)
    carrier.do()
    assert carrier.before["address"] == {"line1": "Old Rd"}
    assert carrier.probe().seen == "applied"
    carrier.undo("restore")
    assert carrier.verify().seen == "absent"
    assert partner.foreign("GET", path)["body"]["address"] == {"line1": "Old Rd"}
    assert partner.foreign("GET", path)["body"]["service"] == "express"


def test_carrier_instructions_that_were_not_there_are_removed(partner, driver):
    """Nothing stood there before: the undo is a removal."""
    carrier = driver("set_carrier_instructions", order="1234", address=ADDRESS)
    carrier.do()
    assert carrier.probe().state["had_before"] is False
    carrier.undo("remove")
    assert carrier.verify().seen == "absent"
    assert partner.count("carrier_instructions") == 0


def test_a_foreign_edit_is_diverged_and_never_overwritten(partner, driver):
    """Somebody changed the instructions after us: the probe says so, and an undo decided before it is refused."""
    path = "/v1/orders/1234/carrier-instructions"
    carrier = driver("set_carrier_instructions", order="1234", address=ADDRESS)
    carrier.do()
    observed = carrier.probe()
    partner.foreign("PUT", path, {"address": {"line1": "Their St"}}, account="acct_main")
    assert carrier.probe().seen == "diverged"
    with pytest.raises(Refused) as no:
        carrier.capability.undo(carrier.call("remove", observed))
    assert no.value.code == "http_412"
    assert partner.foreign("GET", path)["body"]["address"] == {"line1": "Their St"}


def test_a_foreign_edit_between_preparation_and_call_is_not_overwritten(partner, driver):
    """The version that was read before the intent is the only one that is replaced."""
    path = "/v1/orders/1234/carrier-instructions"
    partner.foreign("PUT", path, {"address": {"line1": "Old Rd"}}, account="acct_main")
    carrier = driver("set_carrier_instructions", order="1234", address=ADDRESS)
    carrier.prepare()
    partner.foreign("PUT", path, {"address": {"line1": "Their St"}}, account="acct_main")
    with pytest.raises(Refused):
        carrier.capability.do(carrier.call())


def test_a_lost_answer_of_a_setting_is_recognised_by_its_image(partner, driver):
    """No after-image was recorded; what was asked for is what is compared."""
    partner.arm("drop_after_commit", method="PUT")
    carrier = driver("set_carrier_instructions", order="1234", address=ADDRESS)
    with pytest.raises(Ambiguous):
        carrier.do()
    seen = carrier.probe()
    assert seen.seen == "applied"
    carrier.after = dict(seen.state)  # what the engine records as the after-image of a probed success
    assert carrier.probe().seen == "applied"
    carrier.undo("remove")
    assert carrier.verify().seen == "absent"


def test_a_setting_that_changed_nothing_has_nothing_to_undo(partner, driver):
    """Before and after are equal: by definition the effect is absent."""
    partner.foreign("PUT", "/v1/orders/1234/carrier-instructions", {"address": ADDRESS}, account="acct_main")
    carrier = driver("set_carrier_instructions", order="1234", address=ADDRESS)
    carrier.do()
    assert carrier.probe().seen == "absent"


def test_a_locked_order_is_refused(partner, driver):
    """The carrier has collected: refused by the provider, nothing changed."""
    partner.control("lock_carrier", order="1234")
    with pytest.raises(Refused) as no:
        driver("set_carrier_instructions", order="1234", address=ADDRESS).do()
    assert no.value.code == "carrier_locked"


def test_an_accepted_export_is_unknown_until_its_operation_is_final(partner, driver):
    """202 is no success: running is inconclusive, done is applied and can be deleted (field case C-04)."""
    partner.configure(export_seconds=60)
    export = driver("make_export", title="orders")
    accepted = export.do()
    assert isinstance(accepted, Accepted)
    assert export.probe().seen == "inconclusive"
    operation = accepted.operation.rsplit("/", 1)[-1]
    partner.control("set_operation", id=operation, status="done")
    seen = export.probe()
    assert (seen.seen, seen.reference[:4]) == ("applied", "exp_")
    export.reference = seen.reference
    export.undo("delete")
    assert export.verify().seen == "absent"
    assert partner.count("export") == 0


@pytest.mark.parametrize("status", ["failed", "expired"])
def test_an_operation_that_failed_or_was_forgotten_left_nothing(partner, driver, status):
    """Failed is absent; a forgotten operation is looked up in the list instead."""
    partner.configure(export_seconds=60)
    export = driver("make_export", title="orders")
    operation = export.do().operation.rsplit("/", 1)[-1]
    partner.control("set_operation", id=operation, status=status)
    assert export.probe().seen == "absent"


def test_an_operation_elsewhere_is_not_asked(partner, driver):
    """Our credential goes to the partner's own host only."""
    export = driver("make_export", title="orders")
    export.effect = {"operation": "http://127.0.0.1:1/v1/operations/op_1"}
    assert export.probe().seen == "inconclusive"
    assert partner.requests() == []


def test_another_accounts_thing_is_never_taken_for_ours(partner, driver, adapter):
    """The credential sees things of an account that is not the configured one: not ours, so not acted on."""
    shelf = adapter(partner.url, account="acct_someone")
    reserve = driver("reserve_inventory", **RESERVE)
    reserve.capability = shelf.capabilities["partner.reserve_inventory"]
    with pytest.raises(Ambiguous) as lost:
        reserve.do()
    assert lost.value.code == "foreign"
    assert reserve.probe().seen == "inconclusive"


def test_a_wrong_credential_is_refused_and_never_shown(partner, driver, adapter):
    """401 is a refusal; no text holds the token."""
    shelf = adapter(partner.url, token="env:BAD")
    reserve = driver("reserve_inventory", **RESERVE)
    reserve.capability = shelf.capabilities["partner.reserve_inventory"]
    with pytest.raises(Refused) as no:
        reserve.do()
    assert no.value.code == "http_401"
    assert "nobody" not in str(no.value)


def test_notifications_and_reports_leave_once_with_their_marker(partner, driver):
    """Irreversible calls have no undo; they are keyed and found by marker."""
    note = driver("notify_partner", order="1234", message='quotes " and {braces} are text')
    note.do()
    assert partner.requests("POST")[0]["body"]["message"] == 'quotes " and {braces} are text'
    assert note.probe().seen == "applied"
    report = driver("buy_report", "act-2", subject="acme")
    assert report.do().output["fee_minor"] == 250
    assert (partner.count("notification"), partner.count("report")) == (1, 1)
    with pytest.raises(NotSent):
        report.capability.undo(report.call("none"))
