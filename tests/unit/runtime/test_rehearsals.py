"""Drills on a sandbox: what held is certified with a date; what did not certifies nothing and says what is left."""

from contextlib import contextmanager
from dataclasses import replace

import pytest

from amends.core.contract import Alternative
from amends.core.errors import CallerError, ConfigError, Conflict, Denied, InvalidInput, SystemRefused
from amends.core.status import RunStatus
from amends.runtime.engine import Engine
from amends.testing.fakes import DENY, needs_approval
from amends.testing.worlds import CANARY, blind, catalog_of, corrector, keyed, queued, setting, visible

ARGS = {"name": "o-1"}
NAME = "shop.reserve"


class Site:
    """A production world and its sandbox, each with its own system, ledger and policy."""

    def __init__(self, build, *makes):
        self.production, self.sandbox = build(*makes), build(*makes)
        self.sandbox.clock = self.production.clock
        self.engine = Engine(self._kit(self.production, "owner-1"), self.opened)
        self.production.engines.append(self.engine)
        self.process = "owner-1"

    def opened(self, adapter):
        return self._opened()

    @contextmanager
    def _opened(self):
        engine = self.sandbox.engine(self.process, on_sandbox=True)
        yield engine._made
        engine._made.claims.close()

    def _kit(self, world, owner):
        return world.engine(owner).kit

    def drill(self, args=ARGS, **options):
        return self.engine.drill(NAME, args, **options)

    @property
    def certificates(self):
        return list(self.engine.kit.journal.rows("certificate"))

    @property
    def there(self):
        """The runs on the sandbox."""
        return self.sandbox.engines[-1].runs()


@pytest.fixture
def site(build):
    """A site whose `shop.reserve` is keyed and undone by `cancel`."""
    return Site(build, keyed())


def facts(world):
    """What policy was told of the certificate, for each forward call."""
    return [request.contract_facts["drilled"] for request in world.authorizer.requests if request.phase == "forward"]


# --- what held --------------------------------------------------------------------------------------------------


def test_a_drill_is_a_run_on_the_sandbox_and_a_certificate_in_the_projects_ledger(site):
    """Done, seen, undone, seen gone there; nothing was sent in production, and its ledger has the certificate alone."""
    certificate = site.drill()
    assert [verb for verb, _ in site.sandbox.system.sequence("do", "undo")] == ["do", "undo"]
    assert (site.sandbox.system.count(), site.production.system.requests) == (0, [])
    assert [run.status for run in site.there] == [RunStatus.RECOVERED]
    assert site.engine.runs() == []
    assert len(site.certificates) == 1
    assert certificate.expires_us - site.engine.kit.clock.now_us() <= 30 * 86_400_000_000
    assert site.there[0].run_id in certificate.detail


def test_the_effect_is_looked_at_apart_from_its_answer_before_it_is_undone(site):
    """A call whose answer is proof is looked at all the same: the probe is drilled too."""
    site.drill()
    verbs = [verb for verb, _ in site.sandbox.system.sequence("do", "probe", "undo")]
    assert verbs[:2] == ["do", "probe"]
    assert verbs[-1] == "probe"


def test_policy_sees_that_a_call_was_drilled_and_until_when(site):
    """Whether its contract asks for a drill or not; expiry is the clock's."""
    with site.production.run("before") as run:
        run.call(NAME, {"name": "a"})
    certificate = site.drill()
    with site.production.run("after") as run:
        run.call(NAME, {"name": "b"})
    site.production.clock.jump_to(certificate.expires_us)
    with site.production.run("later") as run:
        run.call(NAME, {"name": "c"})
    assert facts(site.production) == [False, True, False]


def test_a_certificate_is_about_the_contract_as_it_was(site):
    """A contract that changed was never drilled."""
    site.drill()
    [capability] = site.production.capabilities
    capability.contract = capability.contract.model_copy(update={"undo_cost": "a fee"})
    with site.production.run() as run:
        run.call(NAME, ARGS)
    assert facts(site.production) == [False]


def test_a_certificate_is_about_the_version_of_its_adapter(build):
    """Where `prepare` names no subject, another version of the distribution voids it."""
    site = Site(build, keyed())
    site.drill()
    offers = [replace(offer, distribution="amends-shop 2.0") for offer in site.engine.kit.catalog.all()]
    catalog = catalog_of([], str)
    for offer in offers:
        catalog._add(offer)
    upgraded = site.production.engine("owner-2", catalog=catalog)
    with site.production.run(engine=upgraded) as run:
        run.call(NAME, ARGS)
    assert facts(site.production) == [False]


def test_a_call_that_needs_a_drill_is_drilled_without_one_on_the_sandbox(build):
    """Nothing needs a certificate where certificates come from; in production the call then counts as proven."""
    site = Site(build, keyed(needs_drill=True))
    site.drill()
    [there] = [r for r in site.sandbox.authorizer.requests if r.phase == "forward"]
    assert (there.contract_facts["proven"], there.contract_facts["drilled"]) == (True, False)
    with site.production.run() as run:
        run.call(NAME, ARGS)
    [here] = [r for r in site.production.authorizer.requests if r.phase == "forward"]
    assert (here.contract_facts["proven"], here.contract_facts["drilled"]) == (True, True)


def test_a_lost_answer_that_a_look_settles_is_no_doubt(site):
    """The outcome became known, on evidence: the drill goes on from there."""
    site.sandbox.system.tell(NAME, "do", "lost")
    site.drill()
    assert (site.sandbox.system.count(), len(site.certificates)) == (0, 1)


def test_a_person_who_is_named_says_yes_where_policy_asks(site):
    """To the call and to its undo, as that person, and recorded as theirs."""
    site.sandbox.authorizer.rules = {NAME: needs_approval(1), f"{NAME}.undo": needs_approval(2)}
    site.drill(by="maya")
    assert (site.sandbox.system.count(), len(site.certificates)) == (0, 1)


def test_nobody_has_to_tell_people_of_a_sandbox(build):
    """A note for a place that nothing there serves is closed; one that can be posted is posted."""
    site = Site(build, visible(NAME, place="person:{name}"))
    site.drill()
    assert [run.status for run in site.there] == [RunStatus.RECOVERED]
    served = Site(build, visible(NAME), corrector())
    served.drill()
    assert len(served.sandbox.system.notes) == 1


def test_secrets_stay_out_of_the_sandboxes_ledger(site):
    """The world's examination finds the canary in no payload; a secret in the arguments is refused."""
    site.sandbox.secrets.resolve("env:SHOP_TOKEN")
    site.production.secrets.resolve("env:SHOP_TOKEN")
    with pytest.raises(InvalidInput):
        site.drill({"name": CANARY})
    assert site.sandbox.system.requests == []


# --- what did not hold ------------------------------------------------------------------------------------------


def failing(site, error=SystemRefused, args=ARGS, **options):
    """The error of a drill that certifies nothing."""
    with pytest.raises(error) as refused:
        site.drill(args, **options)
    assert site.certificates == []
    return refused.value


def test_an_undo_that_lies_is_found_out(site):
    """It says well done, and the effect is there: named, with the reference, and waiting for a person."""
    site.sandbox.system.tell(NAME, "undo", *["lie"] * 20)
    error = failing(site)
    assert error.data["step"] in {"undo", "verify undone"}
    assert "ref-000001" in error.message
    assert (site.sandbox.system.count(), error.data["run_status"]) == (1, "needs_human")


def test_an_undo_that_is_refused_certifies_nothing(site):
    """The provider's no is told in its words."""
    site.sandbox.system.tell(NAME, "undo", "refused")
    error = failing(site)
    assert (error.data["step"], site.sandbox.system.count()) == ("undo", 1)


def test_a_probe_that_cannot_see_certifies_nothing(site):
    """An answer is not enough: the look has to find the effect; it is taken back all the same."""
    site.sandbox.system.tell(NAME, "probe", *["inconclusive"] * 3)
    error = failing(site)
    assert error.data["step"] == "verify"


def test_a_probe_that_denies_what_is_there_certifies_nothing(site):
    """It would have called a real effect failed."""
    site.sandbox.system.tell(NAME, "probe", *["absent"] * 3)
    assert failing(site).data["step"] == "verify"


def test_a_call_that_makes_two_effects_certifies_nothing(site):
    """Both are taken back, and the twin is told."""
    site.sandbox.system.tell(NAME, "do", "twice")
    assert failing(site).data["step"] == "verify"


def test_a_call_that_fails_certifies_nothing(site):
    """Nothing was there to undo."""
    site.sandbox.system.tell(NAME, "do", "refused")
    error = failing(site)
    assert (error.data["step"], site.sandbox.system.count()) == ("do", 0)
    assert "nothing is left" in error.message


def test_an_outcome_that_stays_unknown_certifies_nothing(build):
    """A blind call whose answer is lost is a person's."""
    site = Site(build, blind(NAME))
    site.sandbox.system.tell(NAME, "do", "lost")
    error = failing(site)
    assert (error.data["step"], site.sandbox.system.count()) == ("do", 1)


def test_arguments_that_change_nothing_certify_nothing(build):
    """There was nothing to undo, so nothing is proven about the undo."""
    site = Site(build, setting(NAME))
    site.sandbox.system.values["o-1"] = "on"
    error = failing(site, args={"name": "o-1", "value": "on"})
    assert site.sandbox.system.sent(NAME, "undo") == []
    assert error.data["step"] == "undo"


@pytest.mark.parametrize(
    ("action", "step"), [(f"{NAME}.probe", "verify"), (f"{NAME}.undo", "undo")], ids=["probe", "undo"]
)
def test_what_policy_denies_on_the_sandbox_is_told_as_that(site, action, step):
    """`Denied`, with the step."""
    site.sandbox.authorizer.rules = {action: DENY}
    error = failing(site, Denied)
    assert error.data["step"] == step


def test_a_call_that_policy_denies_on_the_sandbox_is_not_sent(site):
    """The policy's own words come through."""
    site.sandbox.authorizer.rules = {NAME: DENY}
    assert "no policy permits it" in failing(site, Denied).message
    assert site.sandbox.system.requests == []


def test_a_question_to_people_that_nobody_is_named_for_is_told(site):
    """The remedy is an option."""
    site.sandbox.authorizer.rules = {NAME: needs_approval(1)}
    assert "--by" in failing(site, Denied).message


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (queued(NAME), "cannot be taken back"),
        (keyed(NAME, compensation=(Alternative(name="tell", undo="correct"),)), "only corrected"),
        (keyed(NAME, compensation=(Alternative(name="person", undo="escalate"),)), "decided by a person"),
    ],
    ids=["irreversible", "corrections only", "a person only"],
)
def test_a_call_without_an_undo_of_its_own_cannot_be_drilled(build, make, why):
    """It says why; nothing is sent."""
    site = Site(build, make)
    assert why in failing(site, CallerError).message
    assert site.sandbox.system.requests == []


def test_a_corrector_cannot_be_drilled(build):
    """A correction stays."""
    site = Site(build, corrector(NAME))
    with pytest.raises(CallerError, match="a correction stays"):
        site.engine.drill(NAME, {"place": "note:x", "text": "y"})


def test_a_sandbox_under_another_contract_proves_nothing(build):
    """The certificate would be about something else."""
    site = Site(build, keyed())
    [capability] = site.sandbox.capabilities
    capability.contract = capability.contract.model_copy(update={"undo_cost": "a fee"})
    assert "another one on the sandbox" in failing(site, ConfigError).message
    assert site.sandbox.system.requests == []


# --- what an earlier drill left -----------------------------------------------------------------------------------


def died(site):
    """A drill whose process ended after its call."""

    class KilledError(BaseException):
        pass

    claims, held = site.sandbox, site.sandbox.system.sent
    with site.sandbox.engine("owner-9", on_sandbox=True).run(
        workflow=f"drill:{NAME}", run_key="killed", agent="drill"
    ) as run:
        run.call(NAME, {"name": "left"})
        run.detach()
    assert len(held(NAME, "do")) == 1
    claims.die("owner-9")


def test_what_a_drill_that_died_left_is_taken_back_first(site):
    """Then the drill goes on as if nothing had been."""
    died(site)
    assert site.sandbox.system.count(NAME, "left") == 1
    site.drill()
    assert (site.sandbox.system.count(), len(site.certificates)) == (0, 1)


def test_a_drill_that_needs_a_person_is_decided_before_the_next(site):
    """The error names the run; once it is decided, drills go on."""
    site.sandbox.system.tell(NAME, "undo", "refused")
    left = failing(site).data["run_id"]
    error = failing(site, Conflict)
    assert error.data["run_id"] == left
    assert site.sandbox.system.sequence("do") == [("do", "o-1")]
    desk = site.sandbox.engines[-1]
    [item] = desk.escalations()
    desk.resolve(item.escalation_id, "compensate", by="maya")
    site.drill()
    assert (site.sandbox.system.count(), len(site.certificates)) == (0, 1)
