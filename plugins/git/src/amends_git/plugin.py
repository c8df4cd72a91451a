"""The hooks of the git adapter. They only register."""

from __future__ import annotations

from importlib.resources import files

from amends.spi import AdapterContext, PolicyContribution, Registry, hookimpl
from amends.spi.http import HttpSender
from amends_git import contracts
from amends_git.branches import CreateBranch, DeleteBranch, Tag
from amends_git.checkout import CheckOut
from amends_git.commit import CommitFiles
from amends_git.examine import examine
from amends_git.github import GitHub
from amends_git.merge import MergeBranch
from amends_git.options import options_of
from amends_git.pr_close import ClosePr
from amends_git.pr_merge import MergePr
from amends_git.pull_requests import DraftPr, PrCorrection
from amends_git.pushes import ForcePush, Push, Revert

SPI = ">=1.0,<2"  # the versions of amends.spi that this adapter works with


@hookimpl
def amends_register_capabilities(context: AdapterContext, registry: Registry) -> None:
    """Every capability, over the repositories of the section."""
    options = options_of(context)
    for capability in (
        CreateBranch(contracts.create_branch(options), options),
        CommitFiles(contracts.commit(options), options),
        MergeBranch(contracts.merge(options), options),
        CheckOut(contracts.checkout(options), options),
        Push(contracts.push(options), options),
        ForcePush(contracts.force_push(options), options),
        DeleteBranch(contracts.delete_branch(options), options),
        Tag(contracts.tag(options), options),
        Revert(contracts.revert(options), options),
    ):
        registry.capability(capability)
    if any(repository.pull_requests for repository in options.repositories.values()):
        hub = GitHub(options, HttpSender())
        registry.capability(DraftPr(contracts.draft_pr(options), hub))
        registry.capability(ClosePr(contracts.close_pr(options), hub))
        registry.capability(MergePr(contracts.merge_pr(options), hub))
        registry.capability(PrCorrection(contracts.correction(options), hub))


@hookimpl
def amends_register_policies(context: AdapterContext, registry: Registry) -> None:
    """Default least-privilege policies of the namespace `Git`; those of pull requests only where there are any."""
    options = options_of(context)
    names = ["git"]
    if any(repository.pull_requests for repository in options.repositories.values()):
        names.append("pull_requests")
    folder = files("amends_git") / "policies"
    registry.policies(
        PolicyContribution(
            policies={f"{name}.cedar": (folder / f"{name}.cedar").read_text(encoding="utf-8") for name in names},
            tests={
                f"{name}.policytest.json": (folder / f"{name}.policytest.json").read_text(encoding="utf-8")
                for name in names
            },
        )
    )


@hookimpl
def amends_register_doctor(context: AdapterContext, registry: Registry) -> None:
    """Git's version, every remote and every checkout."""
    options = options_of(context)
    registry.doctor(lambda: examine(options, context.secret))
