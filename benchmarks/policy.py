"""What policies cost, as ratios taken in one run: machines differ, ratios hold.

    python benchmarks/policy.py [--quick]

"Raw" is one `is_authorized` of cedarpy over parsed handles: all policies unsliced, entities and schema ready. Every
pair is measured in alternating rounds and compared by the median of the rounds' ratios, in processor time.
"""

from __future__ import annotations

import argparse
import gc
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path

import cedarpy

from amends.backends.cedar import CedarAuthorizer, native
from amends.backends.cedar.compile import Snapshot
from amends.backends.cedar.question import from_record
from amends.backends.cedar.replaying import replay
from amends.backends.cedar.worker import Worker
from amends.core.contract import Alternative, Contract, Effect, ProbeRule, Readers
from amends.ports.authorizer import AuthorizationRequest, Principal
from amends.spi import PolicyContribution

NOW_US = 1_772_445_600_000_000
HOUR_US = 3_600_000_000
ACTIONS = 20
DEFAULTS = """
@id("shop:make") @reason("agents may make things")
permit (principal is Amends::Agent, action == Shop::Action::"shop.make_0", resource);
@id("shop:undo-fresh") @reason("recovery takes back what is fresh")
permit (principal, action == Shop::Action::"shop.make_0.undo", resource)
when { context.time.age <= duration("1h") };
@id("shop:undo-old") @reason("finance takes back what is old")
permit (principal, action == Shop::Action::"shop.make_0.undo", resource)
when { context has approval && context.approval.tier >= 2 && context.approval.roles.contains(Amends::Role::"finance") };
"""


def contract(number: int) -> Contract:
    """A capability that makes a thing and takes it back."""
    return Contract(
        capability=f"shop.make_{number}",
        summary="makes a thing",
        effect=Effect(kind="thing", system="shop", resource="thing:{id}"),
        readers=Readers(audience="machine", where="the shop"),
        reversibility="compensatable",
        probe=ProbeRule(strength="id"),
        compensation=(Alternative(name="remove"),),
        input={"quantity": "Long", "item": "String"},
    )


FIRST = contract(0)


def site_policies(total: int) -> str:
    """`total` rules of a site: nine of ten name one action, one of ten a whole phase."""
    rules = []
    for number in range(total):
        name = f"shop.make_{number % ACTIONS}" + (".undo" if number % 2 else "")
        scope = f'action == Shop::Action::"{name}"'
        if number % 10 == 9:
            scope = f'action in Amends::Action::"phase.{"undo" if number % 20 == 9 else "forward"}"'
        rules.append(
            f'@id("site:{number}") @reason("rule {number}")\nforbid (principal, {scope}, resource)\n'
            f'when {{ context.run.workflow == "w{number}" && context.run.attempt > {number} }};'
        )
    return "\n".join(rules)


def scoped_policies(total: int) -> str:
    """`total` rules that each name one of many actions; ten of them are about the action that is asked."""
    rules = []
    for number in range(total):
        name = f"shop.make_{number % ACTIONS if number >= 10 else 0}"
        if number >= 10 and name == "shop.make_0":
            name = "shop.make_1"
        rules.append(
            f'@id("site:{number}") @reason("rule {number}")\n'
            f'forbid (principal, action == Shop::Action::"{name}", resource)\n'
            f'when {{ context.run.workflow == "w{number}" }};'
        )
    return "\n".join(rules)


def load(policies: str, folder: Path) -> CedarAuthorizer:
    """The baseline, the shop, and a site with these policies."""
    folder.mkdir()
    (folder / "bundle.toml").write_text('label = "1.0.0-dev"\n', encoding="utf-8")
    for part, start in enumerate(range(0, len(policies), 200_000)):
        end = policies.rfind(";", start, start + 200_000) + 1 if start + 200_000 < len(policies) else len(policies)
        (folder / f"site{part}.cedar").write_text(policies[start:end], encoding="utf-8")
    return CedarAuthorizer.load(
        contracts=[contract(number) for number in range(ACTIONS)],
        contributions={"shop": PolicyContribution(policies={"shop.cedar": DEFAULTS})},
        site_bundle=folder,
        known_labels={},
    )


def request(phase: str, *, age_us: int = 0, number: int = 0) -> AuthorizationRequest:
    """An unremarkable request about the first capability."""
    forward = phase == "forward"
    made = FIRST
    return AuthorizationRequest(
        decision_id=f"decision-{number}",
        phase="forward" if forward else "undo",
        action=made.capability if forward else f"{made.capability}.undo",
        contract=made,
        principal=Principal("Agent", "bot", "acme") if forward else Principal("Service", "recovery", "acme"),
        resource_type="thing",
        resource_id=f"thing-{number}",
        tenant="acme",
        environment="production",
        now_us=NOW_US,
        age_us=age_us,
        run={
            "run_id": "run-1",
            "workflow": "orders",
            "agent": "bot",
            "owner": "maya",
            "initiator": "sam",
            "attempt": 1,
            "success_verified": True,
        },
        evidence={"complete": True, "missing": []},
        contract_facts={"proven": True, "safe": True, "reference_owned": True},
        forward=None if forward else {"status": "succeeded", "principal": "bot", "decided_at_us": NOW_US - HOUR_US},
        input={"quantity": 3, "item": "bolt"},
    )


def raw(authorizer: CedarAuthorizer, asked: AuthorizationRequest) -> Callable[[], object]:
    """One `is_authorized` over handles: everything parsed beforehand, nothing sliced."""
    snapshot = snapshot_of(authorizer)
    question = from_record(authorizer.decide(asked).context)
    entities = native.parse_entities(question.entities, snapshot.schema)
    whole = snapshot.whole.handle
    plain = {**{name: dict(uid) for name, uid in question.uids.items()}, "context": dict(question.context)}
    return lambda: cedarpy.is_authorized(plain, whole, entities, snapshot.schema)


def snapshot_of(authorizer: CedarAuthorizer) -> Snapshot:
    """What the authorizer asks."""
    return authorizer.active.snapshot


def seconds(work: Callable[[], object], times: int) -> float:
    """Processor time of one call, over `times` of them."""
    begin = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - begin) / times


def ratio(
    work: Callable[[], object], base: Callable[[], object], *, times: int, rounds: int = 7
) -> tuple[float, float]:
    """The median ratio of `work` to `base` over alternating rounds, and the median time of `work` in microseconds."""
    work(), base()
    pairs = [(seconds(work, times), seconds(base, times)) for _ in range(rounds)]
    return statistics.median(w / b for w, b in pairs), statistics.median(w for w, _ in pairs) * 1e6


def resident_kib() -> int:
    """The memory the process holds now."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:  # another system: the most it ever held
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return pages * resource.getpagesize() // 1024


def growth_kib(authorizer: CedarAuthorizer, decisions: int) -> tuple[int, int]:
    """How much memory `decisions` decisions add, the first tenth apart (that is what caches take once)."""
    kinds = (request("forward"), request("undo", age_us=HOUR_US // 2), request("undo", age_us=3 * HOUR_US))
    warm = decisions // 10
    for number in range(warm):
        authorizer.decide(kinds[number % 3])
    gc.collect()
    before = resident_kib()
    for number in range(decisions - warm):
        authorizer.decide(kinds[number % 3])
    gc.collect()
    return resident_kib() - before, before


def row(name: str, value: str, limit: str, *, holds: bool) -> bool:
    """One line of the result."""
    print(f"{'ok  ' if holds else 'OVER'}  {name:<52} {value:>24}   {limit}")
    return holds


def main(arguments: Sequence[str]) -> int:
    """Print every ratio beside its limit; exit 1 if one is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and decisions")
    quick = parser.parse_args(arguments).quick
    times, decisions = (100, 6_000) if quick else (400, 100_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        site = load(site_policies(100), folder / "hundred")
        ten, thousand = (load(scoped_policies(total), folder / f"scoped{total}") for total in (10, 1_000))
    forward, old = request("forward"), request("undo", age_us=3 * HOUR_US)
    asked = site.decide(old)
    if (site.decide(forward).verdict, asked.verdict) != ("allow", "needs_approval"):
        raise SystemExit("the questions are not what they should be")
    held = []
    fresh = cycle([request("forward", number=number) for number in range(500)])
    value, micros = ratio(lambda: site.decide(next(fresh)), raw(site, forward), times=times)
    told = f"{value:.2f}x ({micros:.0f} µs)"
    held.append(row("one authorization, always another resource ÷ raw", told, "at most 1.5x", holds=value <= 1.5))
    value, micros = ratio(lambda: site.decide(forward), raw(site, forward), times=times)
    held.append(row("one authorization ÷ raw", f"{value:.2f}x ({micros:.0f} µs)", "at most 1.5x", holds=value <= 1.5))
    value, micros = ratio(lambda: site.decide(old), raw(site, old), times=times)
    held.append(row("needs_approval ÷ raw", f"{value:.2f}x ({micros:.0f} µs)", "at most 6x", holds=value <= 6))
    value, micros = ratio(lambda: thousand.decide(forward), lambda: ten.decide(forward), times=times)
    held.append(row("1,000 scoped policies ÷ 10", f"{value:.2f}x ({micros:.0f} µs)", "at most 2x", holds=value <= 2))
    kinds = [site.decide(one) for one in (forward, request("undo", age_us=HOUR_US // 2), forward, old)]
    recorded = [kinds[number % 4] for number in range(times * 10)]
    begin = time.process_time()
    counted = Worker().run(lambda: sum(1 for _ in replay(recorded, snapshot_of(site))))
    per_second = counted / (time.process_time() - begin)
    held.append(row("replay, a second of one core", f"{per_second:,.0f}", "at least 1,000", holds=per_second >= 1_000))
    grown, before = growth_kib(site, decisions)
    words = f"{grown:+,} KiB of {before:,}"
    held.append(row(f"memory after {decisions:,} decisions", words, "at most +2,048 KiB", holds=grown <= 2_048))
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
