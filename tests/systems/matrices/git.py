"""The fault matrices of the git capabilities, over real repositories, in which effects are counted.

`RefMatrix`: what moves refs of a remote, over smart HTTP. `LocalMatrix`: what changes the checkout alone, which has no
wire. Pull requests are in `matrices.pull_requests`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from amends.core.canonical import Json
from amends.testing.conformance import AdapterMatrix, Args, CallLine, Exchange, Line, Subject
from amends.testing.loopback.git_http import GitHttp

TOKEN = "token-of-the-git-server"
BASIC = "Basic eC1hY2Nlc3MtdG9rZW46dG9rZW4tb2YtdGhlLWdpdC1zZXJ2ZXI="  # the same, as git sends it
SHARED = "shared-"  # how branches begin that others build on
THEIRS = "theirs"  # what somebody else did
_NOBODY = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{role}_{part}": "maya" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")},
}
PUSH_SECONDS = 4.0  # several runs of git, each with a server's

# --- repositories -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Forge:
    """A bare repository below `folder`, and the agent's clone of it. `url`: where its server is, if there is one."""

    folder: Path
    url: str = ""

    @property
    def remote(self) -> Path:
        return self.folder / "billing.git"

    @property
    def clone(self) -> Path:
        return self.folder / "agent"

    def git(self, *args: str, at: Path | None = None, stdin: str = "") -> str:
        """Run git as a person would, in the remote unless told; what it printed. Raises `CalledProcessError`."""
        argv = ["git", "-C", str(at or self.remote), *args]
        done = subprocess.run(argv, env=_NOBODY, input=stdin, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def found(self, ref: str, *, at: Path | None = None) -> str:
        """The commit of a ref; empty if there is none."""
        return self.git("for-each-ref", "--format=%(objectname)", ref, at=at)

    def move(self, branch: str, to: str, *, at: Path | None = None) -> None:
        """Somebody moves a branch, or makes it."""
        self.git("update-ref", f"refs/heads/{branch}", to, at=at)

    def drop(self, ref: str, *, at: Path | None = None) -> None:
        """Somebody deletes a ref."""
        self.git("update-ref", "-d", ref, at=at)

    def commit(self, name: str, parent: str, *, at: Path | None = None) -> str:
        """A commit that adds one file of that name to a parent."""
        blob = self.git("hash-object", "-w", "--stdin", stdin=name, at=at)
        rows = [f"100644 blob {blob}\t{name}", *self.git("ls-tree", parent, at=at).splitlines()]
        tree = self.git("mktree", stdin="".join(f"{row}\n" for row in rows), at=at)
        return self.git("commit-tree", tree, f"-p{parent}", "-m", name, at=at)

    def has(self, branch: str, name: str, *, at: Path | None = None) -> bool:
        """Whether a file of that name is on the branch."""
        return bool(self.git("ls-tree", "--name-only", branch, "--", name, at=at))


def start_of(folder: Path, url: str = "") -> Forge:
    """A forge whose `main` has one empty commit."""
    forge = Forge(folder, url)
    forge.git("init", "-q", "--bare", "-b", "main", str(forge.remote), at=folder)
    forge.move("main", forge.git("commit-tree", forge.git("mktree"), "-m", "start"))
    forge.git("clone", "-q", str(forge.remote), str(forge.clone), at=folder)
    return forge


def _branch(args: Args) -> str:
    return str(args["branch"])


def _ref(args: Args) -> str:
    return f"refs/heads/{args['branch']}"


def push_over(forge: Forge, args: Args) -> None:
    """Somebody else pushes a commit on top of the branch."""
    forge.move(_branch(args), forge.commit(THEIRS, forge.found(_ref(args)) or "main"))


def theirs_stay(forge: Forge, args: Args) -> bool:
    return forge.has(_branch(args), THEIRS)


def _reworded(args: Args) -> Args:
    name = "name" if "name" in args else "branch"
    return {**args, name: f"{args[name]}-reworded"}


# --- refs of the remote -----------------------------------------------------------------------------------------------


def _to_push(forge: Forge, word: str) -> Args:
    forge.move(word, "main")
    return {"repo": "billing", "branch": word, "commit": forge.commit(word, "main", at=forge.clone)}


def _to_force(forge: Forge, word: str) -> Args:
    old = forge.commit(f"{word}-old", "main")
    forge.move(word, old)
    return {"repo": "billing", "branch": word, "commit": forge.commit(word, "main", at=forge.clone), "over": old}


def _to_delete(forge: Forge, word: str) -> Args:
    made = forge.commit(word, "main")
    forge.move(word, made)
    forge.git("update-ref", f"refs/kept/{word}", made)  # somebody else still has it
    return {"repo": "billing", "branch": word}


def _to_revert(forge: Forge, word: str) -> Args:
    branch, made = f"{SHARED}{word}", forge.commit(word, "main")
    forge.move(branch, made)
    return {"repo": "billing", "branch": branch, "commit": made}


def _tag_moved(forge: Forge, args: Args) -> None:
    forge.git("update-ref", f"refs/tags/{args['name']}", forge.commit(THEIRS, "main"))


CREATE_BRANCH = Subject[Forge](
    capability="git.create_branch",
    args=lambda _, word: {"repo": "billing", "branch": word},
    effects=lambda forge, args: int(bool(forge.found(_ref(args)))),
    other=_reworded,
    taken_away=lambda forge, args: forge.drop(_ref(args)),
    edited=push_over,
    kept=theirs_stay,
    takes_seconds=PUSH_SECONDS,
)
PUSH = Subject[Forge](
    capability="git.push",
    args=_to_push,
    effects=lambda forge, args: int(forge.found(_ref(args)) == args["commit"]),
    other=_reworded,
    taken_away=lambda forge, args: forge.move(_branch(args), "main"),
    edited=push_over,
    kept=theirs_stay,
    takes_seconds=PUSH_SECONDS,
)
FORCE_PUSH = Subject[Forge](
    capability="git.force_push",
    args=_to_force,
    effects=lambda forge, args: int(forge.found(_ref(args)) == args["commit"]),
    other=_reworded,
    taken_away=lambda forge, args: forge.move(_branch(args), str(args["over"])),
    edited=push_over,
    kept=theirs_stay,
    takes_seconds=PUSH_SECONDS,
)
DELETE_BRANCH = Subject[Forge](
    capability="git.delete_branch",
    args=_to_delete,
    effects=lambda forge, args: int(not forge.found(_ref(args))),
    taken_away=lambda forge, args: forge.move(_branch(args), f"refs/kept/{args['branch']}"),
    edited=push_over,
    kept=theirs_stay,
    takes_seconds=PUSH_SECONDS,
)
TAG = Subject[Forge](
    capability="git.tag",
    args=lambda forge, word: {
        "repo": "billing",
        "name": word,
        "commit": forge.found("refs/heads/main"),
        "message": "release",
    },
    effects=lambda forge, args: int(bool(forge.found(f"refs/tags/{args['name']}"))),
    other=_reworded,
    text="message",
    taken_away=lambda forge, args: forge.drop(f"refs/tags/{args['name']}"),
    edited=_tag_moved,
    kept=lambda forge, args: forge.has(f"refs/tags/{args['name']}", THEIRS),
    takes_seconds=PUSH_SECONDS,
)
REVERT = Subject[Forge](  # on a branch that others build on: taken back by a revert of the revert
    capability="git.revert",
    args=_to_revert,
    effects=lambda forge, args: int(not forge.has(_branch(args), _branch(args).removeprefix(SHARED))),
    edited=push_over,
    kept=theirs_stay,
    takes_seconds=PUSH_SECONDS,
)


class RefMatrix(AdapterMatrix[Forge]):
    """A remote behind `git http-backend`, and a clone of it."""

    subjects = (CREATE_BRANCH, PUSH, FORCE_PUSH, DELETE_BRANCH, TAG, REVERT)

    @contextmanager
    def system(self, folder: Path) -> Generator[Forge]:
        with GitHttp(folder, wanted=BASIC) as server:
            yield start_of(folder, server.url)

    def upstream(self, system: Forge) -> str:
        return system.url

    def adapters(self, system: Forge, address: str) -> Mapping[str, Mapping[str, Json]]:
        return {"git": {"repositories": {"billing": {**over_http(address), "checkout": str(system.clone)}}}}

    def secrets(self, system: Forge) -> Mapping[str, str]:
        return {"GIT_TOKEN": TOKEN}

    def writes(self, exchange: Exchange) -> bool:
        return pushes(exchange)


def over_http(address: str) -> dict[str, Json]:
    return {"remote": f"{address}/billing.git", "token": "env:GIT_TOKEN", "shared_branches": ["main", f"{SHARED}*"]}


def pushes(exchange: Exchange) -> bool:
    """Fetching is a POST too."""
    return exchange.method == "POST" and exchange.target.endswith("/git-receive-pack")


# --- the checkout -----------------------------------------------------------------------------------------------------

_READ_BACK = {
    "test_a_200_that_did_nothing_is_not_recorded_as_an_effect": "nobody stands between the adapter and the checkout who"
    " could answer for it, and the adapter has looked at the checkout after the change"
}


def _to_commit(forge: Forge, word: str) -> Args:
    return {"repo": "billing", "branch": word, "message": "ours", "files": {word: "ours\n"}, "base": "main"}


def _to_join(forge: Forge, word: str) -> Args:
    for branch in (word, f"{word}-source"):
        forge.move(branch, forge.commit(branch, "main", at=forge.clone), at=forge.clone)
    return {"repo": "billing", "branch": word, "source": f"{word}-source", "message": "ours"}


def _to_show(forge: Forge, word: str) -> Args:
    """A branch to show, in a worktree that shows nothing of any other test."""
    _show_main(forge)
    forge.move(word, forge.commit(word, "main", at=forge.clone), at=forge.clone)
    return {"repo": "billing", "target": word}


def _show_main(forge: Forge) -> None:
    forge.git("checkout", "-q", "--force", "--detach", "main", at=forge.clone)


def _write_over(forge: Forge, args: Args) -> None:
    """Somebody else changes the file that is shown."""
    (forge.clone / str(args["target"])).write_text(THEIRS)


def _shown(forge: Forge, args: Args) -> int:
    there = (forge.clone / str(args["target"])).exists()
    return int(there and forge.git("rev-parse", "--abbrev-ref", "HEAD", at=forge.clone) == args["target"])


def _commit_over(forge: Forge, args: Args) -> None:
    """Somebody else commits on top of the branch."""
    tip = forge.found(_ref(args), at=forge.clone)
    forge.move(_branch(args), forge.commit(THEIRS, tip, at=forge.clone), at=forge.clone)


def _commits(forge: Forge, args: Args, *options: str) -> int:
    """How many commits the branch has that `main` has not."""
    if not forge.found(_ref(args), at=forge.clone):
        return 0
    return int(forge.git("rev-list", "--count", *options, f"main..{args['branch']}", at=forge.clone))


COMMIT = Subject[Forge](
    capability="git.commit",
    args=_to_commit,
    effects=_commits,
    other=lambda args: {**args, "message": "in other words"},
    text="message",
    taken_away=lambda forge, args: forge.drop(_ref(args), at=forge.clone),
    edited=_commit_over,
    kept=lambda forge, args: forge.has(_branch(args), THEIRS, at=forge.clone),
    exempt=_READ_BACK,
)
MERGE = Subject[Forge](
    capability="git.merge",
    args=_to_join,
    effects=lambda forge, args: _commits(forge, args, "--merges"),
    other=lambda args: {**args, "message": "in other words"},
    text="message",
    taken_away=lambda forge, args: forge.move(_branch(args), f"{args['branch']}^1", at=forge.clone),
    edited=_commit_over,
    kept=lambda forge, args: forge.has(_branch(args), THEIRS, at=forge.clone),
    exempt=_READ_BACK,
)
CHECKOUT = Subject[Forge](
    capability="git.checkout",
    args=_to_show,
    effects=_shown,
    other=lambda args: {**args, "put_aside": True},
    taken_away=lambda forge, _: _show_main(forge),
    edited=_write_over,
    kept=lambda forge, args: (forge.clone / str(args["target"])).read_text() == THEIRS,
    exempt=_READ_BACK,
)


class LocalMatrix(AdapterMatrix[Forge]):
    """A clone on this disk."""

    subjects = (COMMIT, MERGE, CHECKOUT)

    @contextmanager
    def system(self, folder: Path) -> Generator[Forge]:
        yield start_of(folder)

    def upstream(self, system: Forge) -> str:
        return ""

    def line(self, system: Forge, folder: Path) -> Line:
        return CallLine()

    def adapters(self, system: Forge, address: str) -> Mapping[str, Mapping[str, Json]]:
        return {"git": {"repositories": {"billing": {"remote": str(system.remote), "checkout": str(system.clone)}}}}
