"""The hooks of the git adapter. They only register."""

from __future__ import annotations

from importlib.resources import files

from amends.spi import AdapterContext, PolicyContribution, Registry, hookimpl
from amends_git import contracts
from amends_git.commit import CommitFiles
from amends_git.examine import examine
from amends_git.options import options_of
from amends_git.refs import CreateBranch, DeleteBranch, Push, Revert, Tag


@hookimpl
def amends_register_capabilities(context: AdapterContext, registry: Registry) -> None:
    """Every capability, over the repositories of the section."""
    options = options_of(context)
    for capability in (
        CreateBranch(contracts.create_branch(options), options),
        CommitFiles(contracts.commit(options), options),
        Push(contracts.push(options), options),
        DeleteBranch(contracts.delete_branch(options), options),
        Tag(contracts.tag(options), options),
        Revert(contracts.revert(options), options),
    ):
        registry.capability(capability)


@hookimpl
def amends_register_policies(context: AdapterContext, registry: Registry) -> None:
    """Default least-privilege policies of the namespace `Git`."""
    del context
    folder = files("amends_git") / "policies"
    registry.policies(
        PolicyContribution(
            policies={"git.cedar": (folder / "git.cedar").read_text(encoding="utf-8")},
            tests={"git.policytest.json": (folder / "git.policytest.json").read_text(encoding="utf-8")},
        )
    )


@hookimpl
def amends_register_doctor(context: AdapterContext, registry: Registry) -> None:
    """Git's version, every remote and every checkout."""
    options = options_of(context)
    registry.doctor(lambda: examine(options, context.secret))
