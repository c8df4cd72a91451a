"""The git binary: its environment, its time, its failures. Nothing else starts git.

No shell, no prompt, C locale; the environment is built from a short list of names, so no secret of the engine
reaches a hook. Credentials travel in the environment of the child, never in arguments or texts. Hooks and file
monitors of local repositories are off: an agent can write them.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable

from amends.spi.process import Budget, Ended, run
from amends_git.options import Repository

_PASSED_ON = (
    "PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO",
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
)  # fmt: skip
_QUIET_CONFIG = (
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("push.followTags", "false"),
    ("push.gpgSign", "false"),
    ("push.recurseSubmodules", "no"),
    ("fetch.recurseSubmodules", "no"),
)
_USERINFO = re.compile(r"://[^/@\s]*@")
_EXCERPT = 600


class GitFailed(Exception):
    """git ended with an error; what that means for the remote is not said by it. The text shows no credentials."""


class Git:
    """git with one environment and one time budget."""

    def __init__(self, environment: dict[str, str], budget: Budget, *, reserve_seconds: float = 0.0) -> None:
        self._environment = environment
        self._budget = budget
        self._reserve_seconds = reserve_seconds

    def with_environment(self, extra: dict[str, str]) -> Git:
        """The same git with more in its environment."""
        return Git(self._environment | extra, self._budget, reserve_seconds=self._reserve_seconds)

    def ask(
        self, *args: str, git_dir: str, stdin: bytes = b"", index: str = "", reserve_seconds: float | None = None
    ) -> Ended:
        """Run git on `git_dir` and hand back how it ended. Raises `TimeLimit`, or `OSError` if git is missing."""
        environment = self._environment | ({"GIT_INDEX_FILE": index} if index else {})
        reserve = self._reserve_seconds if reserve_seconds is None else reserve_seconds
        return run(
            ["git", f"--git-dir={git_dir}", *args],
            env=environment,
            stdin=stdin,
            timeout_seconds=self._budget.remaining(reserve_seconds=reserve),
        )

    def tell(self, *args: str, git_dir: str, stdin: bytes = b"", index: str = "") -> str:
        """Run git and return its output without the last line feed. Raises `GitFailed` if it ended with an error."""
        ended = self.ask(*args, git_dir=git_dir, stdin=stdin, index=index)
        if ended.returncode != 0:
            raise GitFailed(f"git {args[0]}: {excerpt(ended)}")
        return ended.out.rstrip("\n")


def excerpt(ended: Ended) -> str:
    """What git said, on one line, without user information in addresses."""
    text = " ".join((ended.err or ended.out).split())
    return _USERINFO.sub("://", text)[:_EXCERPT] or f"exit code {ended.returncode}"


def environment(repository: Repository, secret: Callable[[str], str] | None, marker: str = "") -> dict[str, str]:
    """The environment for one repository. With `secret`, the token is resolved and sent to that remote alone, and so is
    `marker`, for whoever reads its log.
    """
    base = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    config = list(_QUIET_CONFIG)
    if secret is not None and repository.remote.startswith(("https://", "http://")):
        config += [("http.followRedirects", "false"), ("http.version", "HTTP/1.1")]
        config += [(f"http.{repository.remote}.extraHeader", line) for line in _headers(repository, secret, marker)]
    base |= {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
        "GIT_CONFIG_COUNT": str(len(config)),
        "GIT_AUTHOR_NAME": repository.author_name,
        "GIT_AUTHOR_EMAIL": repository.author_email,
        "GIT_COMMITTER_NAME": repository.author_name,
        "GIT_COMMITTER_EMAIL": repository.author_email,
    }
    base["GIT_SSH_COMMAND"] = repository.ssh_command or base.get("GIT_SSH_COMMAND", "ssh -oBatchMode=yes")
    for number, (key, value) in enumerate(config):
        base |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return base


def _headers(repository: Repository, secret: Callable[[str], str], marker: str) -> list[str]:
    """What goes along with every request. A connection that is used once is never a reason for libcurl to send a push
    a second time, which it does by itself where a kept-open one breaks.
    """
    lines = ["Connection: close"]
    if marker.isascii() and marker.isprintable() and marker:
        lines.append(f"Amends-Action: {marker}")
    if repository.token:
        pair = f"{repository.username}:{secret(repository.token)}"
        lines.append(f"Authorization: Basic {base64.b64encode(pair.encode()).decode()}")
    return lines
