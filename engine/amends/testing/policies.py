"""For authors of adapters: what is wrong with the default policies of an adapter, in words."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from amends.backends.cedar.testing import check_policies, run_policy_tests
from amends.core.contract import Contract
from amends.spi import PolicyContribution


def policy_problems(
    adapter: str,
    contracts: Iterable[Contract],
    contribution: PolicyContribution,
    *,
    prefixes: Collection[str] | None = None,
) -> list[str]:
    """Load the baseline and `contribution` with `contracts`, and run the tests of both: one line for each refusal and
    each failed test, empty if all is well. `prefixes`: the capability prefixes, where they are not the adapter's name.
    """
    owned = {adapter: prefixes or (adapter,)}
    declared = tuple(contracts)
    findings = check_policies(
        contracts=declared,
        contributions={adapter: contribution},
        site_bundle=None,
        known_labels={},
        owned_prefixes=owned,
    )
    if findings:
        return [f"{finding}; {finding.hint}" for finding in findings]
    results = run_policy_tests(
        contracts=declared,
        contributions={adapter: contribution},
        site_bundle=None,
        known_labels={},
        owned_prefixes=owned,
    )
    return [f"{result.file}: {result.name}: {result.problem}" for result in results if not result.passed]
