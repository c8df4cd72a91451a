"""The audit of a contract: each question answered, or visibly blank."""

import pytest

from amends.core.audit import audit_line, drill_record
from amends.core.contract import Alternative, Effect, Keying, ProbeRule
from amends.core.fold import certificate_key
from amends.core.rows import CertificateRow
from amends.testing.contracts import corrector, irreversible, reversible, visible

PERMITS = {"partner.reserve": ["partner:reserve"], "partner.reserve.undo": ["partner:undo"]}


def test_a_complete_contract_has_no_blank():
    """Eleven questions, eleven answers."""
    line = audit_line(reversible(), PERMITS, "")
    assert line.blanks == ()
    assert line.effect == "creates reservation"
    assert line.lives == "partner: reservation:{name}"
    assert line.undo == "cancel"
    assert line.verify == "read by id; absence final after 10 s"
    assert line.keying == "keyed by Idempotency-Key for 86400 s"
    assert line.permitted_outcomes == "cancel: succeeded"
    assert line.authorized_by == "call: partner:reserve; undo: partner:undo"
    assert line.proof == "not needed"
    assert line.as_dict()["blanks"] == []


@pytest.mark.parametrize(
    ("contract", "permits", "blank"),
    [
        (reversible(), {}, "authorized_by"),
        (reversible(), {"partner.reserve.undo": ["x"]}, "authorized_by"),
        (reversible(undo_cost=""), PERMITS, "undo_cost"),
        (reversible(compensation=()), PERMITS, "undo"),
        (reversible(probe=None), PERMITS, "verify"),
        (reversible(needs_drill=True), PERMITS, "proof"),
    ],
)
def test_what_nobody_answered_is_blank(contract, permits, blank):
    """The blank is named, so that `--ready` can fail on it."""
    assert blank in audit_line(contract, permits, "").blanks


def test_a_drill_fills_the_proof():
    """Whatever the certificate says stands there."""
    assert audit_line(reversible(needs_drill=True), PERMITS, "drilled yesterday").proof == "drilled yesterday"


@pytest.mark.parametrize(
    ("mode", "way"), [("on_success", "outbox (on_success)"), ("gate", "gate, approved by a person")]
)
def test_what_cannot_be_undone_says_how_it_leaves(mode, way):
    """That is its answer, not a blank."""
    line = audit_line(irreversible(mode=mode), {"partner.notify": ["x"]}, "")
    assert way in line.undo
    assert line.undo_cost != ""
    assert line.permitted_outcomes == "none: never undone"


def test_a_ladder_says_when_each_rung_is_taken():
    """In the order in which they are tried."""
    ladder = (Alternative(name="void", when={"state": ("open",)}), Alternative(name="refund"))
    line = audit_line(reversible(compensation=ladder), PERMITS, "")
    assert line.undo == "void when state in ['open'] → refund"


def test_a_blind_key_and_a_weak_probe_are_said_as_they_are():
    """Nothing sounds better than it is."""
    weak = ProbeRule(strength="search", complete=False)
    line = audit_line(reversible(keying=Keying(kind="blind"), probe=weak), PERMITS, "")
    assert "goes to a person" in line.keying
    assert line.verify == "read by search, not every page; absence proves nothing"


def test_what_the_provider_does_not_key_is_found_by_its_probe():
    """That is an answer too."""
    assert audit_line(reversible(keying=Keying(kind="probeable")), PERMITS, "").keying == "found again by its probe"


def test_reads_and_corrections_need_no_undo():
    """A read changes nothing and costs nothing; a correction stays."""
    read = reversible(undo_cost="", effect=Effect(kind="list", system="p", resource="list:{name}", changes="none"))
    line = audit_line(read, PERMITS, "")
    assert (line.effect, line.undo, line.undo_cost) == ("nothing: it only reads", "not needed", "none")
    assert (line.verify, line.keying, line.permitted_outcomes) == (
        "read by id; absence final after 10 s",
        "not needed",
        "not needed",
    )
    posted = audit_line(corrector(), {"jira.correct.correct": ["amends:correct"]}, "")
    assert posted.undo == "none: a correction stays"
    assert posted.authorized_by == "correct: amends:correct"


def test_readers_are_named_with_where_they_read():
    """Who sees it decides how it may be taken back."""
    assert audit_line(visible(), {}, "").readers == "team: the channel"


# --- drills --------------------------------------------------------------------------------------------------

DAY_US = 86_400_000_000
ADAPTER = "adapter:amends-partner 1.0"


def certified(contract, *, at_us=DAY_US, valid_us=30 * DAY_US, subject=ADAPTER, major=1):
    """A certificate of `contract`."""
    return CertificateRow(
        key=certificate_key(contract.capability, contract.digest, subject, major),
        capability=contract.capability,
        contract_digest=contract.digest,
        subject_digest=subject,
        certified_us=at_us,
        expires_us=at_us + valid_us,
    )


def record(contract, *rows, now_us=4 * DAY_US):
    """How the contract stands three days after its drill."""
    return drill_record(contract, rows, adapter=ADAPTER, engine_major=1, now_us=now_us)


def test_a_valid_certificate_has_its_age_and_its_end():
    """In days, and as times."""
    told = record(reversible(), certified(reversible()), certified(reversible(capability="partner.other"), at_us=5))
    assert (told.standing, told.age_days, told.subjects) == ("valid", 3.0, 1)
    assert (told.drilled_us, told.expires_us) == (DAY_US, 31 * DAY_US)


@pytest.mark.parametrize(
    ("row", "standing", "why"),
    [
        (certified(reversible(), valid_us=DAY_US), "expired", "expired"),
        (certified(reversible(undo_cost="a fee")), "void", "contract has changed"),
        (certified(reversible(), subject="adapter:amends-partner 0.9"), "void", "it was `amends-partner 0.9`"),
        (certified(reversible(), major=0), "void", "engine has changed"),
    ],
    ids=["expired", "contract", "adapter", "engine"],
)
def test_a_certificate_that_counts_no_more_says_why(row, standing, why):
    """And still when it was."""
    told = record(reversible(), row)
    assert (told.standing, told.age_days) == (standing, 3.0)
    assert why in told.why


def test_the_newest_certificate_of_this_contract_is_the_one_that_is_told():
    """An older one, and a newer one of another contract, do not hide it; subjects are counted."""
    told = record(
        reversible(),
        certified(reversible(), at_us=1, valid_us=2, subject="sha256:a"),
        certified(reversible(), at_us=2 * DAY_US, subject="sha256:b"),
        certified(reversible(), subject="sha256:c"),
        certified(reversible(undo_cost="a fee"), at_us=3 * DAY_US),
    )
    assert (told.standing, told.age_days, told.subjects) == ("valid", 2.0, 2)


READ = reversible(undo_cost="", effect=Effect(kind="list", system="p", resource="list:{name}", changes="none"))
NOTED = reversible(compensation=(Alternative(name="note", undo="correct"), Alternative(name="ask", undo="escalate")))


@pytest.mark.parametrize(
    ("contract", "standing", "why"),
    [
        (reversible(), "never", "it was never drilled"),
        (irreversible(), "none", "it cannot be taken back"),
        (corrector(), "none", "a correction stays"),
        (READ, "none", "it only reads"),
        (
            reversible(
                compensation=(Alternative(name="note", undo="correct"), Alternative(name="ask", undo="escalate"))
            ),
            "none",
            "it is only corrected, or decided by a person",
        ),
    ],
    ids=["reversible", "irreversible", "corrector", "read", "corrected"],
)
def test_what_was_never_drilled_is_told_apart_from_what_cannot_be(contract, standing, why):
    """The second has its reason."""
    told = record(contract)
    assert (told.standing, told.why) == (standing, why)
