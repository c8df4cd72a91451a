"""`git.merge`: a merge commit on a local branch (see `local`), never a fast-forward, so it always has one inverse.

Its first parent is recorded: unpushed, the branch goes back to it; pushed, what the merge brought is reverted against
it, as `git revert -m 1` does.
"""

from __future__ import annotations

from collections.abc import Mapping

from amends.spi import Json, Refused
from amends_git import objects
from amends_git.arguments import Merge, is_commit_id
from amends_git.images import ACTION
from amends_git.local import LocalBranch
from amends_git.workspace import Workspace


class MergeBranch(LocalBranch[Merge]):
    """See the module."""

    model = Merge

    def starts(self, args: Merge) -> tuple[str, ...]:
        return (args.branch,)

    def settle(self, work: Workspace, args: Merge, parent: str) -> dict[str, Json]:
        ref = f"refs/heads/{args.source}"
        merged = objects.read_git(work.git, work.checkout_dir, ref) or work.remote_value(ref)
        merged = merged or (args.source if is_commit_id(args.source) else "")
        if not merged:
            raise Refused(f"neither the checkout nor the remote has branch `{args.source}`", code="no_source")
        for commit in (parent, merged):
            work.bring(commit, history=True)
        if work.contains(parent, merged):
            raise Refused(f"`{args.branch}` has {merged} already", code="nothing_to_merge")
        return {"merged": merged}

    def build(self, work: Workspace, args: Merge, facts: Mapping[str, Json]) -> str:
        parent, merged = str(facts["parent"]), str(facts["merged"])
        for commit in (parent, merged):
            work.bring(commit, history=True)
        tree = objects.merged_tree(work, parent, merged)
        text = args.message or f"Merge `{args.source}` into `{args.branch}`"
        message = objects.marked(work, text, {ACTION: str(facts["marker"])})
        return objects.commit(work, tree=tree, parents=[parent, merged], message=message, date=str(facts["date"]))
