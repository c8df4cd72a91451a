"""A small adapter `partner` with default policies, and requests about it."""

import pytest

from amends.backends.cedar import CedarAuthorizer
from amends.core.contract import Alternative, Contract, Effect, ProbeRule, Readers, Release, Signal
from amends.core.status import Outcome
from amends.ports.authorizer import AuthorizationRequest, Principal
from amends.spi import PolicyContribution
from amends.testing.worlds import World, ledger_faults

RESERVE = Contract(
    capability="partner.reserve",
    summary="reserve stock",
    effect=Effect(kind="reservation", system="partner", resource="reservation:{id}"),
    readers=Readers(audience="machine", where="the partner's order system"),
    reversibility="compensatable",
    probe=ProbeRule(strength="id"),
    compensation=(
        Alternative(name="release", safe_when=(Outcome.SUCCEEDED,), expires_after_seconds=14_400),
        Alternative(name="review", authority="partner.finance_review"),
    ),
    input={"quantity": "Long", "urgent": "Bool", "item": "String", "tags": "Set<String>"},
)
NOTIFY = Contract(
    capability="partner.notify",
    summary="write to the partner",
    effect=Effect(kind="message", system="partner", resource="message:{id}"),
    readers=Readers(audience="partner", where="the partner's inbox"),
    reversibility="irreversible",
    signal=Signal(
        visible_to="the partner", place="mail:{to}", seen="a message", reader_must="nothing", comes_back="never"
    ),
    release=Release(mode="on_success"),
)
CORRECT = Contract(
    capability="partner.post_correction",
    summary="post a correction",
    effect=Effect(kind="note", system="partner", resource="note:{place}"),
    readers=Readers(audience="partner", where="the partner's inbox"),
    reversibility="irreversible",
    corrects=True,
)
CONTRACTS = (RESERVE, NOTIFY, CORRECT)

POLICIES = """
@id("partner:reserve") @reason("agents reserve small quantities")
permit (principal is Amends::Agent, action == Partner::Action::"partner.reserve", resource)
when { context.input.quantity <= 10 };

@id("partner:reserve-many") @reason("a large reservation needs operations")
permit (principal is Amends::Agent, action == Partner::Action::"partner.reserve", resource)
when { context has approval && context.approval.roles.contains(Amends::Role::"operations") };

@id("partner:undo-fresh") @reason("recovery takes back a fresh reservation by itself")
permit (principal, action == Partner::Action::"partner.reserve.undo", resource)
when { context.time.age <= duration("1h") };

@id("partner:undo-older") @reason("an older reservation is taken back by finance only")
permit (principal, action == Partner::Action::"partner.reserve.undo", resource)
when { context has approval && context.approval.tier >= 2 && context.approval.roles.contains(Amends::Role::"finance") };

@id("partner:review") @reason("a finance review is opened by two people")
permit (principal, action == Partner::Action::"partner.finance_review", resource)
when { context has approval && context.approval.count >= 2 };

@id("partner:notify") @reason("agents may prepare messages")
permit (principal is Amends::Agent, action == Partner::Action::"partner.notify", resource);

@id("partner:send") @reason("prepared messages may be sent")
permit (principal, action == Partner::Action::"partner.notify.release", resource);
"""

NOW_US = 1_772_445_600_000_000  # 2026-03-02T10:00:00Z, a Monday
HOUR_US = 3_600_000_000


def make_request(contract=RESERVE, phase="forward", **changes):
    """An unremarkable request; `changes` replace whole fields."""
    names = {"forward": contract.capability}
    facts = {
        "decision_id": "decision-1",
        "phase": phase,
        "action": names.get(phase, f"{contract.capability}.{phase}"),
        "contract": contract,
        "principal": Principal("Agent", "bot", "acme")
        if phase == "forward"
        else Principal("Service", "recovery", "acme"),
        "resource_type": contract.effect.resource_type,
        "resource_id": "thing-1",
        "tenant": "acme",
        "environment": "production",
        "now_us": NOW_US,
        "age_us": 0 if phase == "forward" else HOUR_US // 2,
        "run": {
            "run_id": "run-1",
            "workflow": "orders",
            "agent": "bot",
            "owner": "maya",
            "initiator": "sam",
            "attempt": 1,
            "success_verified": True,
            "requires_human": False,
        },
        "evidence": {"complete": True, "missing": []},
        "contract_facts": {"proven": True, "safe": True, "reference_owned": True},
        "forward": None
        if phase == "forward"
        else {"status": "succeeded", "principal": "bot", "decided_at_us": NOW_US - HOUR_US, "session": "s1"},
        "input": {"quantity": 3, "urgent": False, "item": "bolt", "tags": ["a"]} if contract is RESERVE else {},
    }
    return AuthorizationRequest(**(facts | changes))


@pytest.fixture
def contracts():
    """The contracts of the adapter `partner`."""
    return {"reserve": RESERVE, "notify": NOTIFY, "correct": CORRECT}


@pytest.fixture
def ask():
    """Build a request about one of the contracts."""
    return make_request


@pytest.fixture
def load():
    """Load the baseline with the adapter `partner`; arguments replace what `CedarAuthorizer.load` gets."""

    def loaded(**changes):
        arguments = {
            "contracts": CONTRACTS,
            "contributions": {"partner": PolicyContribution(policies={"default.cedar": POLICIES})},
            "site_bundle": None,
            "known_labels": {},
        }
        return CedarAuthorizer.load(**(arguments | changes))

    return loaded


@pytest.fixture
def site(tmp_path):
    """Write a site bundle and return its folder."""

    def written(policies, label="1.0.0", manifest="", **files):
        (tmp_path / "bundle.toml").write_text(f'label = "{label}"\n{manifest}', encoding="utf-8")
        (tmp_path / "site.cedar").write_text(policies, encoding="utf-8")
        for name, text in files.items():
            (tmp_path / name.replace("__", ".")).write_text(text, encoding="utf-8")
        return tmp_path

    return written


IDLE = '@id("site:idle") @reason("says nothing") forbid (principal is Amends::Human, action, resource) when { false };'


def defaults_of(contract):
    """Permits for everything a contract brings, as an adapter's defaults."""
    adapter, name = contract.capability.split(".")
    texts = []
    for action, phase in contract.action_names().items():
        if phase in {"probe", "correct"}:
            continue
        who = "principal is Amends::Agent" if phase == "forward" else "principal"
        texts.append(
            f"""@id("{adapter}:{action.split(".", 1)[1].replace(".", "-").replace("_", "-")}")
            @reason("{name} is permitted, {phase}")
            permit ({who}, action == {contract.namespace}::Action::"{action}", resource);"""
        )
    return "\n".join(texts)


@pytest.fixture
def cedar_world(tmp_path):
    """Worlds whose policy is real Cedar: the baseline, defaults of an adapter `shop`, and a site's rules. `load` reads
    another site bundle for `authorizer.adopt`. Every test ends with a sound ledger.
    """
    worlds = []

    def written(policies, label, files):
        folder = tmp_path / f"bundle-{label}-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        (folder / "bundle.toml").write_text(f'label = "{label}"\n', encoding="utf-8")
        (folder / "site.cedar").write_text(policies, encoding="utf-8")
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        return folder

    class CedarWorld(World):
        def defaults(self):
            return "\n".join(defaults_of(capability.contract) for capability in self.capabilities)

        def load(self, policies, label="1.0.0", **files):
            """An authorizer over this site's bundle."""
            return CedarAuthorizer.load(
                contracts=[capability.contract for capability in self.capabilities],
                contributions={"shop": PolicyContribution(policies={"default.cedar": self.defaults()})},
                site_bundle=written(policies, label, files),
                known_labels={},
            )

    def made(*capabilities, site=IDLE, label="1.0.0", people=None):
        world = CedarWorld(*capabilities)
        world.authorizer = world.load(site, label)
        worlds.append(world)
        world.engine(**({"people": people} if people else {}))
        return world

    yield made
    for world in worlds:
        faults = ledger_faults(world.journal)
        world.close()
        assert faults == []
