"""GitHub's REST API, the part about pull requests, over real bare repositories.

Heads and merges are real: a merge makes a commit in the repository that the setting `repositories` names for the
project. As on the product, an open pull request per head is all there may be (422), unless `one_per_head` is off.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, ClassVar

from amends.testing.loopback.system import Route, System, Unit
from amends.testing.loopback.wire import ApiError, Doc, Request, Response, iso

PULLS, COMMENTS = "pulls", "comments"
_TOP = "/repos/{owner}/{name}"
_NOT_MERGEABLE = "Pull Request is not mergeable"


class GitHub(System):
    """Projects and who may speak: tokens stand for accounts. `no_merge` is a refusing project's 405 message."""

    name = "github"
    settings: ClassVar[Doc] = {
        "tokens": {"ghp-loopback": "agent"},
        "repositories": {},
        "one_per_head": True,
        "no_merge": "",
    }

    def routes(self) -> Sequence[Route]:
        """Pull requests, their merge, and comments."""
        return [
            Route("GET", f"{_TOP}/pulls", _list_pulls, reads=True),
            Route("POST", f"{_TOP}/pulls", _open_pull),
            Route("GET", f"{_TOP}/pulls/{{number}}", _get_pull, reads=True),
            Route("PATCH", f"{_TOP}/pulls/{{number}}", _patch_pull),
            Route("PUT", f"{_TOP}/pulls/{{number}}/merge", _merge_pull),
            Route("GET", f"{_TOP}/issues/{{number}}/comments", _list_comments, reads=True),
            Route("POST", f"{_TOP}/issues/{{number}}/comments", _comment),
        ]

    def authenticate(self, unit: Unit, request: Request) -> str:
        """Bearer tokens."""
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        account = unit.setting("tokens").get(token)
        if account is None:
            raise ApiError(401, "unauthorized", "Bad credentials")
        return str(account)

    def render_error(self, error: ApiError) -> Response:
        """`{"message", "errors"?}`."""
        return Response(error.status, {"message": error.message, **error.extra}, error.headers)


def _open_pull(unit: Unit, request: Request) -> Response:
    project, body = _project(request), request.body
    head = str(body.get("head") or "")
    if not _ref(unit, project, head):
        raise _invalid("Head sha can't be blank")
    if not _ref(unit, project, str(body.get("base") or "")):
        raise _invalid("Base is invalid")
    taken = [pull for pull in _of(unit, project) if pull["head"]["ref"] == head and pull["state"] == "open"]
    if taken and unit.setting("one_per_head"):
        owner = request.params["owner"]
        raise _invalid(f"A pull request already exists for {owner}:{head}.")
    number = unit.rows.next_number(f"pull of {project}")
    pull: Doc = {
        "number": number,
        "project": project,
        "html_url": f"{unit.base}/{project}/pull/{number}",
        "title": body.get("title"),
        "body": body.get("body"),
        "draft": bool(body.get("draft")),
        "state": "open",
        "merged": False,
        "merged_at": None,
        "closed_at": None,
        "merge_commit_sha": None,
        "head": {"ref": head},
        "base": {"ref": body["base"]},
    }
    _put(unit, pull)
    unit.effects.created("pull_request", f"head:{project}/{head}", _key(pull), _marker(body))
    return Response(HTTPStatus.CREATED, _shown(unit, pull))


def _list_pulls(unit: Unit, request: Request) -> Response:
    """`head=owner:branch`, `state=open|closed|all`, `page`, `per_page`."""
    wanted, state = request.query.get("head"), request.query.get("state", "open")
    owner = request.params["owner"]
    project = _project(request)
    found = [
        pull
        for pull in reversed([pull for pull in unit.objects.all(PULLS) if pull["project"] == project])
        if wanted in (None, f"{owner}:{pull['head']['ref']}") and state in ("all", pull["state"])
    ]
    return Response(200, [_shown(unit, pull) for pull in _page(found, request)])


def _get_pull(unit: Unit, request: Request) -> Response:
    return Response(200, _shown(unit, _pull(unit, request)))


def _patch_pull(unit: Unit, request: Request) -> Response:
    pull = _pull(unit, request)
    state = request.body.get("state", pull["state"])
    if state != pull["state"]:
        if pull["merged"]:
            raise _invalid("Cannot change the state of a merged pull request")
        if state == "open" and not _ref(unit, pull["project"], pull["head"]["ref"]):
            raise _invalid("state cannot be changed. The head branch was deleted.")
        unit.effects.changed("pull_state", f"pull:{_key(pull)}", pull["state"], state)
        closed = state == "closed"
        if closed:
            unit.effects.removed("pull_request", _key(pull))
        else:
            unit.effects.restored("pull_request", _key(pull))
        head: Doc = {"ref": pull["head"]["ref"]}
        if closed:
            head["sha"] = _ref(unit, pull["project"], head["ref"])
        pull = {**pull, "state": state, "closed_at": iso(unit.now()) if closed else None, "head": head}
    pull = {**pull, **{name: request.body[name] for name in ("title", "body", "draft") if name in request.body}}
    _put(unit, pull, undo=True)
    return Response(200, _shown(unit, pull))


def _merge_pull(unit: Unit, request: Request) -> Response:
    pull, body = _pull(unit, request), request.body
    project, base = pull["project"], pull["base"]["ref"]
    head, tip = _ref(unit, project, pull["head"]["ref"]), _ref(unit, project, base)
    refused = unit.setting("no_merge") or (_NOT_MERGEABLE if pull["state"] != "open" or pull["draft"] else "")
    if refused:
        raise ApiError(HTTPStatus.METHOD_NOT_ALLOWED, "not_mergeable", str(refused))
    if body.get("sha") not in (None, head):
        raise ApiError(HTTPStatus.CONFLICT, "head_moved", "Head branch was modified. Review and try the merge again.")
    made = _make_merge(unit, pull, tip, head, body)
    merged = {
        **pull, "state": "closed", "merged": True, "merged_at": iso(unit.now()), "merge_commit_sha": made,
        "head": {**pull["head"], "sha": head}, "closed_at": iso(unit.now()),
    }  # fmt: skip
    _put(unit, merged)
    unit.effects.created("merge", f"pull:{_key(pull)}", made, _marker({"body": body.get("commit_message")}))
    unit.after_commit.append(_moves(unit, project, base, made, tip))
    return Response(200, {"sha": made, "merged": True, "message": "Pull Request successfully merged"})


def _make_merge(unit: Unit, pull: Doc, tip: str, head: str, body: Doc) -> str:
    """The commit that a merge makes: nothing points at it before the answer is settled."""
    project, squash = pull["project"], body.get("merge_method") == "squash"
    tree = _git(unit, project, "merge-tree", "--write-tree", tip, head)
    if not tree:
        raise ApiError(HTTPStatus.METHOD_NOT_ALLOWED, "not_mergeable", _NOT_MERGEABLE)
    parents = ["-p", tip] if squash else ["-p", tip, "-p", head]
    title = body.get("commit_title") or f"Merge pull request #{pull['number']} from {pull['head']['ref']}"
    message = f"{title}\n\n{body.get('commit_message') or pull['title']}"
    return _git(unit, project, "commit-tree", tree.splitlines()[0], *parents, "-m", message)


def _moves(unit: Unit, project: str, base: str, new: str, old: str) -> Callable[[], Any]:
    path = unit.setting("repositories")[project]
    return lambda: _run(path, "update-ref", f"refs/heads/{base}", new, old)


def _comment(unit: Unit, request: Request) -> Response:
    pull = _pull(unit, request)
    number = unit.rows.next_number("comment")
    comment: Doc = {"id": number, "pull": _key(pull), "body": request.body.get("body")}
    unit.objects.put(COMMENTS, str(number), comment)
    unit.effects.created("comment", f"pull:{_key(pull)}", str(number), _marker(request.body))
    return Response(HTTPStatus.CREATED, comment)


def _list_comments(unit: Unit, request: Request) -> Response:
    key = f"{_project(request)}#{request.params['number']}"
    found = [comment for comment in unit.objects.all(COMMENTS) if comment["pull"] == key]
    return Response(200, _page(found, request))


def _page(found: list[Doc], request: Request) -> list[Doc]:
    size, page = int(request.query.get("per_page", 30)), int(request.query.get("page", 1))
    return found[(page - 1) * size : page * size]


def _pull(unit: Unit, request: Request) -> Doc:
    pull = unit.objects.get(PULLS, f"{_project(request)}#{request.params['number']}")
    if pull is None:
        raise ApiError(404, "not_found", "Not Found")
    return pull


def _shown(unit: Unit, pull: Doc) -> Doc:
    """As the API shows it: an open pull request's head is where its branch is now, a closed one's where it was."""
    sha = pull["head"].get("sha") or _ref(unit, pull["project"], pull["head"]["ref"])
    return {**pull, "head": {**pull["head"], "sha": sha}}


def _of(unit: Unit, project: str) -> list[Doc]:
    return [pull for pull in unit.objects.truth(PULLS) if pull["project"] == project]


def _put(unit: Unit, pull: Doc, *, undo: bool = False) -> None:
    unit.objects.put(PULLS, _key(pull), pull, undo=undo)


def _key(pull: Doc) -> str:
    return f"{pull['project']}#{pull['number']}"


def _project(request: Request) -> str:
    return f"{request.params['owner']}/{request.params['name']}"


def _marker(body: Doc) -> str:
    """The first line of a body: where a client that marks what it writes has its mark."""
    return str(body.get("body") or "").split("\n", 1)[0]


def _invalid(message: str) -> ApiError:
    return ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", "Validation Failed", errors=[{"message": message}])


def _ref(unit: Unit, project: str, branch: str) -> str:
    return _git(unit, project, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")


def _git(unit: Unit, project: str, *args: str) -> str:
    path = unit.setting("repositories").get(project)
    if path is None:
        raise ApiError(404, "not_found", "Not Found")
    return _run(path, *args)


def _run(path: str, *args: str) -> str:
    """What git printed; empty if it said no."""
    name = {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in _NAME.items()}
    environment = {**os.environ, **name, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    argv = ["git", "-C", path, *args]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30, env=environment)
    return done.stdout.strip() if done.returncode == 0 else ""


_NAME = {"NAME": "GitHub", "EMAIL": "noreply@github.test"}
