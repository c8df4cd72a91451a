"""The fault matrix over git by smart HTTP, and over pull requests with real merges."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from amends.testing.conformance import AdapterMatrix, Args, Exchange, Subject
from amends.testing.loopback import LoopbackSystem
from amends.testing.loopback.git_http import GitHttp

NOBODY = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{role}_{part}": "maya" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")},
}
TOKEN = "token-of-the-git-server"
BASIC = "Basic eC1hY2Nlc3MtdG9rZW46dG9rZW4tb2YtdGhlLWdpdC1zZXJ2ZXI="


@dataclass
class Forge:
    """A bare repository, the agent's clone of it, and the servers in front of it."""

    folder: Path
    server: GitHttp | None = None
    hub: LoopbackSystem | None = None

    @property
    def remote(self) -> Path:
        return self.folder / "billing.git"

    @property
    def clone(self) -> Path:
        return self.folder / "agent"

    def git(self, *args: str, at: Path | None = None, stdin: str = "") -> str:
        done = subprocess.run(
            ["git", "-C", str(at or self.remote), *args],
            env={"PATH": os.environ["PATH"], **NOBODY}, input=stdin, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout.strip()

    def found(self, ref: str) -> str:
        return self.git("rev-parse", "--verify", "--quiet", ref)

    def commit(self, name: str, *parents: str, at: Path | None = None) -> str:
        """A commit of one file of that name on a parent."""
        blob = self.git("hash-object", "-w", "--stdin", stdin=name, at=at)
        rows = [*self.git("ls-tree", parents[0], at=at).splitlines(), f"100644 blob {blob}\t{name}"]
        tree = self.git("mktree", stdin="".join(f"{row}\n" for row in rows), at=at)
        return self.git("commit-tree", tree, *(f"-p{parent}" for parent in parents), "-m", name, at=at)

    def push_over(self, branch: str) -> None:
        """Somebody else pushes a commit on top of the branch."""
        ref = f"refs/heads/{branch}"
        self.git("update-ref", ref, self.commit("theirs", self.found(ref) or self.found("main")))


def start_of(folder: Path) -> Forge:
    forge = Forge(folder)
    forge.git("init", "-q", "--bare", "-b", "main", str(forge.remote), at=folder)
    tree = forge.git("mktree", stdin="")
    forge.git("update-ref", "refs/heads/main", forge.git("commit-tree", tree, "-m", "start"))
    forge.git("clone", "-q", str(forge.remote), str(forge.clone), at=folder)
    return forge


def _theirs(forge: Forge, args: Args) -> None:
    forge.push_over(str(args["branch"]))


def _theirs_stay(forge: Forge, args: Args) -> bool:
    return "theirs" in forge.git("ls-tree", "--name-only", str(args["branch"]))


def _gone(forge: Forge, args: Args) -> None:
    forge.git("update-ref", "-d", f"refs/heads/{args['branch']}")


def _to_force(forge: Forge, word: str) -> Args:
    old = forge.commit(f"{word}-old", "main")
    forge.git("update-ref", f"refs/heads/{word}", old)
    return {"repo": "billing", "branch": word, "commit": forge.commit(word, "main", at=forge.clone), "over": old}


class TestGitOverHttp(AdapterMatrix[Forge]):
    """What moves refs of a remote, over real smart HTTP: made, replaced, and approved first."""

    subjects = (
        Subject(
            capability="git.create_branch",
            args=lambda _, word: {"repo": "billing", "branch": word},
            effects=lambda forge, args: int(bool(forge.found(f"refs/heads/{args['branch']}"))),
            other=lambda args: {**args, "branch": f"{args['branch']}-reworded"},
            taken_away=_gone,
            edited=_theirs,
            kept=_theirs_stay,
        ),
        Subject(
            capability="git.force_push",
            args=_to_force,
            effects=lambda forge, args: int(forge.found(f"refs/heads/{args['branch']}") == args["commit"]),
            edited=_theirs,
            kept=_theirs_stay,
        ),
        Subject(
            capability="git.tag",
            args=lambda forge, word: {
                "repo": "billing", "name": word, "commit": forge.found("main"), "message": "release"
            },
            effects=lambda forge, args: int(bool(forge.found(f"refs/tags/{args['name']}"))),
            other=lambda args: {**args, "name": f"{args['name']}-reworded"},
            text="message",
        ),
    )  # fmt: skip

    @contextmanager
    def system(self, folder: Path) -> Iterator[Forge]:
        forge = start_of(folder)
        with GitHttp(folder, wanted=BASIC) as server:
            forge.server = server
            yield forge

    def upstream(self, system: Forge) -> str:
        return system.server.url

    def adapters(self, system: Forge, address: str) -> Mapping[str, Mapping[str, object]]:
        repository = {"remote": f"{address}/billing.git", "checkout": str(system.clone), "token": "env:KIT_TOKEN"}
        return {"git": {"repositories": {"billing": repository}}}

    def secrets(self, system: Forge) -> Mapping[str, str]:
        return {"KIT_TOKEN": TOKEN}

    def writes(self, exchange: Exchange) -> bool:
        return exchange.method == "POST" and exchange.target.endswith("git-receive-pack")


def _branch(forge: Forge, word: str) -> str:
    forge.git("update-ref", f"refs/heads/{word}", forge.commit(word, "main"))
    return word


def _pull(forge: Forge, word: str) -> dict[str, object]:
    body = {"title": word, "head": _branch(forge, word), "base": "main", "body": "theirs"}
    return forge.hub.foreign("POST", "/repos/acme/billing/pulls", body)["body"]


def _of(forge: Forge, args: Args) -> dict[str, object]:
    return forge.hub.foreign("GET", f"/repos/acme/billing/pulls/{args['number']}")["body"]


def _to_merge(forge: Forge, word: str) -> Args:
    pull = _pull(forge, word)
    return {"repo": "billing", "number": pull["number"], "head": pull["head"]["sha"]}


def _merged(forge: Forge, args: Args) -> int:
    """How often the pull request's work stands in main, reverts taken off."""
    said = forge.git("log", "--format=%B", "main")
    commit = _of(forge, args)["merge_commit_sha"]
    return int(bool(commit)) - int(f"Amends-Reverts: {commit}" in said)


def _opened(forge: Forge, args: Args) -> int:
    return sum(row["resource"] == f"head:acme/billing/{args['branch']}" for row in forge.hub.present("pull_request"))


class TestPullRequests(AdapterMatrix[Forge]):
    """What goes over the REST API; merges are real."""

    subjects = (
        Subject(
            capability="git.draft_pr",
            args=lambda forge, word: {
                "repo": "billing",
                "branch": _branch(forge, word),
                "title": "Add",
                "body": "look",
            },
            effects=_opened,
            other=lambda args: {**args, "title": "Add it"},
            text="body",
        ),
        Subject(
            capability="git.close_pr",
            args=lambda forge, word: {"repo": "billing", "number": _pull(forge, word)["number"]},
            effects=lambda forge, args: int(_of(forge, args)["state"] == "closed"),
            exempt={"test_the_request_names_our_action": "a state has no place for a mark; it is told by its before"},
        ),
        Subject(
            capability="git.merge_pr",
            args=_to_merge,
            effects=_merged,
            text="message",
            exempt=dict.fromkeys(
                (
                    "test_what_was_done_is_taken_back_and_looked_at",
                    "test_an_undo_of_what_is_gone_already_is_not_an_error",
                    "test_an_undo_that_says_ok_and_did_nothing_is_not_believed",
                    "test_an_undo_whose_answer_is_lost_is_looked_at",
                    "test_a_look_that_lags_behind_the_undo_is_waited_for",
                    "test_an_undo_that_is_denied_goes_to_a_person",
                ),
                "its undo is a push beside this line: TestGitOverHttp puts pushes through these faults",
            ),
        ),
    )

    @contextmanager
    def system(self, folder: Path) -> Iterator[Forge]:
        forge = start_of(folder)
        settings = {
            "repositories": {"acme/billing": str(forge.remote)}, "tokens": {TOKEN: "agent"}, "one_per_head": False
        }  # fmt: skip
        with LoopbackSystem.start("github", settings=settings) as hub:
            forge.hub = hub
            yield forge

    def upstream(self, system: Forge) -> str:
        return system.hub.url

    def writes(self, exchange: Exchange) -> bool:
        return exchange.method != "GET" and not exchange.target.endswith("/comments")  # those are corrections

    def adapters(self, system: Forge, address: str) -> Mapping[str, Mapping[str, object]]:
        pulls = {"api": address, "project": "acme/billing", "token": "env:KIT_TOKEN"}
        return {"git": {"repositories": {"billing": {"remote": str(system.remote), "pull_requests": pulls}}}}

    def secrets(self, system: Forge) -> Mapping[str, str]:
        return {"KIT_TOKEN": TOKEN}
