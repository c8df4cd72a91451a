"""What agents may pass: strict models, refused before anything is read or sent."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

_FORBIDDEN_IN_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")
_FORBIDDEN_PART = re.compile(r"^\.|\.lock$")


def _ref_name(name: str) -> str:
    """`name` if git accepts it as a branch or tag (`git check-ref-format`), and no option can be mistaken for it."""
    bad = _FORBIDDEN_IN_REF.search(name) or name == "@" or name.startswith(("-", "/")) or name.endswith(("/", "."))
    if bad or any(_FORBIDDEN_PART.search(part) for part in name.split("/")) or name == "HEAD":
        raise ValueError(f"`{name}` is not a name git accepts")
    return name


def _inside(path: str) -> str:
    """`path` if it stays in the tree and git accepts it."""
    parts = path.split("/")
    if any(part in {"", ".", ".."} or part.lower() == ".git" for part in parts) or "\x00" in path:
        raise ValueError(f"`{path}` is not a path inside the repository")
    return path


def is_commit_id(text: str) -> bool:
    """True for a full object id, SHA-1 or SHA-256."""
    return len(text) in {40, 64} and set(text) <= set("0123456789abcdef")


RepoName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$", max_length=100)]
RefName = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_ref_name)]
TreePath = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_inside)]
CommitId = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
PullNumber = Annotated[int, Field(ge=1, le=999_999_999)]
Text = Annotated[str, Field(min_length=1, max_length=60_000)]


class Arguments(BaseModel):
    """Base: the repository's configured name; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    repo: RepoName


class CreateBranch(Arguments):
    """A new branch at `base`: a branch of the remote, or a full commit id. Empty: the configured base."""

    branch: RefName
    base: RefName | CommitId | None = None


class Commit(Arguments):
    """A commit on a local branch of the checkout, from given contents (null deletes) and from worktree files."""

    branch: RefName
    message: Text
    files: dict[TreePath, str | None] = Field(default_factory=dict[str, str | None])
    paths: list[TreePath] = Field(default_factory=list[str])
    base: RefName | None = None  # where the branch starts if neither the checkout nor the remote has it

    @model_validator(mode="after")
    def _has_content(self) -> Commit:
        if not self.files and not self.paths:
            raise ValueError("a commit needs `files` or `paths`")
        if set(self.files) & set(self.paths):
            raise ValueError("a path is in `files` or in `paths`, not in both")
        return self


class Push(Arguments):
    """`commit` becomes the tip of `branch` on the remote; only fast-forward."""

    branch: RefName
    commit: CommitId


class ForcePush(Arguments):
    """`commit` replaces `over` as the tip of `branch` on the remote; `over` is the very commit that may be lost."""

    branch: RefName
    commit: CommitId
    over: CommitId


class Merge(Arguments):
    """A merge commit on a local branch of the checkout: `source` (branch or full commit id) joins `branch`."""

    branch: RefName
    source: RefName | CommitId
    message: Text | None = None


class Checkout(Arguments):
    """The checkout's worktree shows `target`, a branch of the checkout or a full commit id. `put_aside` allows that
    uncommitted work leaves the worktree; it is kept and comes back with the undo.
    """

    target: RefName | CommitId
    put_aside: bool = False


class DeleteBranch(Arguments):
    """The branch to remove from the remote."""

    branch: RefName


class Tag(Arguments):
    """A new annotated tag on the remote."""

    name: RefName
    commit: CommitId
    message: Text


class Revert(Arguments):
    """A commit that takes back `commit`, on the tip of `branch` on the remote. For a merge, `mainline` is the number of
    the parent that stays (as in `git revert -m`).
    """

    branch: RefName
    commit: CommitId
    mainline: Annotated[int, Field(ge=1, le=99)] | None = None


class DraftPullRequest(Arguments):
    """A draft pull request from `branch` into `base` (empty: the configured base)."""

    branch: RefName
    title: Annotated[str, Field(min_length=1, max_length=250)]
    body: Annotated[str, Field(max_length=60_000)] = ""
    base: RefName | None = None


class ClosePullRequest(Arguments):
    """The pull request to close."""

    number: PullNumber


class MergePullRequest(Arguments):
    """The pull request to merge, at the very head commit that was looked at."""

    number: PullNumber
    head: CommitId
    method: Literal["merge", "squash"] = "merge"
    message: Text | None = None
