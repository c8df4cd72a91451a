"""What the git plugin relies on in GitHub's REST API, asked of any system that speaks it.

Run it on a loopback system and on the emulator: `problems(system, base_url, token, project)`. The project needs a
branch `main`, and for each behaviour a branch with a commit of its own: `branches()` names them, and `make_project`
makes all of it where the system can be asked to. A project is asked once: its pull requests stay.
"""

from __future__ import annotations

from typing import Any

from amends.testing.differences import Behaviour, Difference, Said, Site
from amends.testing.differences import problems as compared

MARK = "<!-- act-1 -->"
_project = ["acme/billing"]


def problems(system: str, base_url: str, token: str, project: str) -> list[str]:
    """What is not as this page says of `system` (`loopback` or `emulator`); empty if all is."""
    _project[:] = [project]
    return compared(BEHAVIOURS, DIFFERENCES, system=system, site=Site(base_url, token))


def branches() -> list[str]:
    """The branches that the behaviours open pull requests of."""
    return [branch_of(behaviour) for behaviour in BEHAVIOURS]


def make_project(base_url: str, token: str, name: str) -> str:
    """Make a project through the API, with each branch one commit ahead of `main`: `owner/name`."""
    site = Site(base_url, token)
    made = site.call("POST", "user/repos", {"name": name, "auto_init": True})
    assert made.status == 201, made
    project = str(made.json["full_name"])
    main = site.call("GET", f"repos/{project}/git/ref/heads/main").json["object"]["sha"]
    for branch in branches():
        ref = site.call("POST", f"repos/{project}/git/refs", {"ref": f"refs/heads/{branch}", "sha": main})
        assert ref.status == 201, ref
        content = {"message": branch, "content": "Yg==", "branch": branch}
        put = site.call("PUT", f"repos/{project}/contents/{branch.replace('/', '-')}.txt", content)
        assert put.status == 201, put
    return project


# --- how the plugin asks ---


def api(site: Site, method: str, path: str, body: Any = None) -> Said:
    return site.call(method, f"repos/{_project[0]}/{path}", body)


def branch_of(behaviour: Behaviour) -> str:
    return f"suite/{behaviour.__name__}"


def opened(site: Site, branch: str, *, draft: bool = True) -> Any:
    body = {"title": "Billing field", "head": branch, "base": "main", "body": f"{MARK}\nready", "draft": draft}
    made = api(site, "POST", "pulls", body)
    assert made.status == 201, made
    return made.json


def of_branch(site: Site, branch: str, state: str = "all") -> list[Any]:
    owner = _project[0].partition("/")[0]
    found = api(site, "GET", f"pulls?head={owner}:{branch}&state={state}&per_page=100&page=1")
    assert found.status == 200, found
    return list(found.json)


def tip(site: Site, number: int) -> str:
    return str(api(site, "GET", f"pulls/{number}").json["head"]["sha"])


# --- behaviours ---


def a_token_is_needed(site: Site) -> None:
    """To write, at least."""
    body = {"title": "x", "head": branch_of(a_token_is_needed), "base": "main"}
    assert api(Site(site.base_url, ""), "POST", "pulls", body).status in {401, 403, 404}


def a_draft_names_its_number_and_shows_its_body(site: Site) -> None:
    """The answer is proof where its body begins with our mark."""
    branch = branch_of(a_draft_names_its_number_and_shows_its_body)
    made = opened(site, branch)
    assert isinstance(made["number"], int), made
    assert made["body"].startswith(MARK), made
    assert (made["state"], made["draft"], made["merged_at"]) == ("open", True, None), made
    assert (made["head"]["ref"], made["base"]["ref"]) == (branch, "main"), made
    assert made["html_url"], made
    assert len(made["head"]["sha"]) == 40, made


def a_pull_request_is_found_by_its_branch(site: Site) -> None:
    """Open and closed ones, newest first; another branch's are not among them."""
    branch = branch_of(a_pull_request_is_found_by_its_branch)
    number = opened(site, branch)["number"]
    assert [item["number"] for item in of_branch(site, branch)] == [number]
    assert of_branch(site, "nobody/s-branch") == []
    assert api(site, "PATCH", f"pulls/{number}", {"state": "closed"}).status == 200
    assert [item["number"] for item in of_branch(site, branch)] == [number]
    assert of_branch(site, branch, "open") == []


def a_second_pull_request_of_a_branch_is_refused(site: Site) -> None:
    """422, and the first one is found."""
    branch = branch_of(a_second_pull_request_of_a_branch_is_refused)
    opened(site, branch)
    body = {"title": "again", "head": branch, "base": "main", "body": MARK, "draft": True}
    said = api(site, "POST", "pulls", body)
    assert said.status == 422, said
    assert "already exists" in str(said.json), said


def a_branch_that_is_not_there_has_no_pull_request(site: Site) -> None:
    """422."""
    said = api(site, "POST", "pulls", {"title": "x", "head": "nobody/s-branch", "base": "main", "body": MARK})
    assert said.status == 422, said


def a_pull_request_that_is_not_there_is_not_found(site: Site) -> None:
    """404."""
    assert api(site, "GET", "pulls/999999").status == 404


def a_close_is_told_and_can_be_taken_back(site: Site) -> None:
    """State and time of closing, then open again; closing twice is no error."""
    number = opened(site, branch_of(a_close_is_told_and_can_be_taken_back))["number"]
    for _ in range(2):
        closed = api(site, "PATCH", f"pulls/{number}", {"state": "closed"}).json
        assert (closed["number"], closed["state"]) == (number, "closed"), closed
        assert closed["closed_at"], closed
    again = api(site, "PATCH", f"pulls/{number}", {"state": "open"}).json
    assert (again["number"], again["state"]) == (number, "open"), again


def a_merge_names_its_commit(site: Site) -> None:
    """In the answer and in the pull request, which is then closed."""
    number = opened(site, branch_of(a_merge_names_its_commit), draft=False)["number"]
    asked = {"sha": tip(site, number), "merge_method": "merge", "commit_message": MARK}
    merged = api(site, "PUT", f"pulls/{number}/merge", asked)
    assert (merged.status, merged.json["merged"]) == (200, True), merged
    pull = api(site, "GET", f"pulls/{number}").json
    assert (pull["state"], pull["merge_commit_sha"]) == ("closed", merged.json["sha"]), pull
    assert pull["merged_at"], pull


def a_merge_of_another_head_is_a_conflict(site: Site) -> None:
    """409: somebody pushed since we looked."""
    number = opened(site, branch_of(a_merge_of_another_head_is_a_conflict), draft=False)["number"]
    said = api(site, "PUT", f"pulls/{number}/merge", {"sha": "0" * 40, "merge_method": "merge"})
    assert said.status == 409, said


def a_draft_cannot_be_merged(site: Site) -> None:
    """405."""
    number = opened(site, branch_of(a_draft_cannot_be_merged))["number"]
    said = api(site, "PUT", f"pulls/{number}/merge", {"sha": tip(site, number), "merge_method": "merge"})
    assert said.status == 405, said


def what_is_merged_is_not_merged_again(site: Site) -> None:
    """405."""
    number = opened(site, branch_of(what_is_merged_is_not_merged_again), draft=False)["number"]
    asked = {"sha": tip(site, number), "merge_method": "merge"}
    assert api(site, "PUT", f"pulls/{number}/merge", asked).status == 200
    assert api(site, "PUT", f"pulls/{number}/merge", asked).status == 405


def no_refusal_of_a_merge_is_a_success(site: Site) -> None:
    """Whatever its number: a 4xx, and nothing merged."""
    number = opened(site, branch_of(no_refusal_of_a_merge_is_a_success), draft=False)["number"]
    said = api(site, "PUT", f"pulls/{number}/merge", {"sha": "0" * 40, "merge_method": "merge"})
    assert 400 <= said.status < 500, said
    assert api(site, "GET", f"pulls/{number}").json["merged_at"] is None


def a_merged_pull_request_cannot_be_opened_again(site: Site) -> None:
    """422: a merge is taken back by a revert only."""
    number = opened(site, branch_of(a_merged_pull_request_cannot_be_opened_again), draft=False)["number"]
    assert api(site, "PUT", f"pulls/{number}/merge", {"sha": tip(site, number)}).status == 200
    assert api(site, "PATCH", f"pulls/{number}", {"state": "open"}).status == 422


def a_comment_is_listed_with_its_body(site: Site) -> None:
    """Where corrections stand; each comment is a new one, whatever it says."""
    number = opened(site, branch_of(a_comment_is_listed_with_its_body))["number"]
    made = [api(site, "POST", f"issues/{number}/comments", {"body": f"{MARK}\nreverted"}) for _ in range(2)]
    assert [said.status for said in made] == [201, 201], made
    listed = api(site, "GET", f"issues/{number}/comments?per_page=100&page=1").json
    assert [item["id"] for item in listed] == [said.json["id"] for said in made], listed
    assert all(item["body"].startswith(MARK) for item in listed), listed


def lists_have_pages(site: Site) -> None:
    """A page that is not full is the last."""
    number = opened(site, branch_of(lists_have_pages))["number"]
    made = [api(site, "POST", f"issues/{number}/comments", {"body": str(count)}).json["id"] for count in range(3)]
    pages = [api(site, "GET", f"issues/{number}/comments?per_page=2&page={page}").json for page in (1, 2, 3)]
    assert [[item["id"] for item in page] for page in pages] == [made[:2], made[2:], []]


BEHAVIOURS: tuple[Behaviour, ...] = (
    a_token_is_needed,
    a_draft_names_its_number_and_shows_its_body,
    a_pull_request_is_found_by_its_branch,
    a_second_pull_request_of_a_branch_is_refused,
    a_branch_that_is_not_there_has_no_pull_request,
    a_pull_request_that_is_not_there_is_not_found,
    a_close_is_told_and_can_be_taken_back,
    a_merge_names_its_commit,
    a_merge_of_another_head_is_a_conflict,
    a_draft_cannot_be_merged,
    what_is_merged_is_not_merged_again,
    no_refusal_of_a_merge_is_a_success,
    a_merged_pull_request_cannot_be_opened_again,
    a_comment_is_listed_with_its_body,
    lists_have_pages,
)

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "emulator",
        "a_second_pull_request_of_a_branch_is_refused",
        "it opens a second one; the plugin looks for an open one before, and counts those that bear its mark after",
    ),
    Difference(
        "emulator",
        "a_branch_that_is_not_there_has_no_pull_request",
        "it opens one of nothing; agents push before, and a push is proven by the remote itself",
    ),
    Difference(
        "emulator",
        "a_merge_of_another_head_is_a_conflict",
        "it says 422, not 409: a refusal as well, and nothing is merged (`no_refusal_of_a_merge_is_a_success`)",
    ),
    Difference(
        "emulator",
        "a_draft_cannot_be_merged",
        "it says 422, not 405: a refusal as well",
    ),
    Difference(
        "emulator",
        "what_is_merged_is_not_merged_again",
        "it says 422, not 405: a refusal as well",
    ),
    Difference(
        "emulator",
        "a_merged_pull_request_cannot_be_opened_again",
        "it opens a merged one again; the plugin takes a merge back by a revert and never asks for this",
    ),
)
