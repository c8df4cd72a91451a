"""Uploads over real sockets: one request that people see, two parts, found again by the name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from amends.spi import NotSent, Refused
from amends.spi.http import Ambiguous
from amends_slack.uploads import Upload

CHANNEL = "C0BILLING"
ARGS = {"channel": CHANNEL, "path": "report.csv"}
COMPLETE = "/api/files.completeUploadExternal"


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "out"
    made.mkdir()
    (made / "report.csv").write_bytes(b"a;b\n\x00\xff\n")
    return made


def upload_call(workspace, folder, args=ARGS):
    upload = Upload(workspace.slack, folder)
    return upload, workspace.prepared(upload, workspace.call(dict(args)))


def test_an_upload_is_one_request_that_people_see(workspace, folder):
    """An address, the bytes, and the call that makes the file; its name begins with our mark, its title does not."""
    upload, call = upload_call(workspace, folder)
    done = workspace.done(upload, call)
    (file,) = workspace.system.objects("files")
    assert (file["name"], file["title"], file["size"]) == ("act-1-report.csv", "report.csv", 7)
    assert workspace.system.count("file") == 1
    assert workspace.sent("files.completeUploadExternal") == workspace.sent("files.getUploadURLExternal") == 1
    assert (done.reference, upload.contract.confirm) == (file["id"], "probe")
    seen = upload.probe(done)
    assert (seen.seen, set(seen.parts)) == ("applied", set(upload.contract.parts))
    assert upload.place(replace(done, effect=seen.effect)) == f"slack:{CHANNEL}/{workspace.messages()[0]['ts']}"


def test_the_upload_address_gets_no_token_and_stands_in_no_text(workspace, folder):
    """It is a credential of its own."""
    upload, call = upload_call(workspace, folder)
    workspace.system.arm("refuse", method="reads", path="/upload/*", status=500, form="html")
    with pytest.raises(NotSent) as lost:
        upload.do(call)
    assert "/upload/" not in str(lost.value)
    (sent,) = workspace.system.requests("POST", "/upload/*")
    assert sent["authorization"] is None


@pytest.mark.parametrize("path", ["/api/files.getUploadURLExternal", "/upload/*"])
def test_what_fails_before_the_file_is_made_was_not_sent(workspace, folder, path):
    """Nobody has seen anything: the same call may be made again."""
    upload, call = upload_call(workspace, folder)
    workspace.system.arm("drop_after_commit", method="reads", path=path)
    with pytest.raises(NotSent):
        upload.do(call)
    assert workspace.sent("files.completeUploadExternal") == 0
    assert upload.probe(call).seen == "absent"


def test_a_no_to_the_address_is_a_refusal(workspace, folder):
    """With Slack's own word, and its wait where it gave one."""
    upload, call = upload_call(workspace, folder)
    path = "/api/files.getUploadURLExternal"
    workspace.system.arm("refuse", method="reads", path=path, code="file_uploads_disabled")
    workspace.system.arm("refuse", method="reads", path=path, code="ratelimited", headers={"Retry-After": "9"})
    with pytest.raises(Refused) as refused:
        upload.do(call)
    assert (refused.value.code, refused.value.again) == ("file_uploads_disabled", False)
    with pytest.raises(Refused) as limited:
        upload.do(call)
    assert (limited.value.again, limited.value.retry_after_seconds) == (True, 9.0)


@pytest.mark.parametrize("fault", ["drop_after_commit", "error_after_commit", "html_answer", "empty_answer"])
def test_an_upload_whose_answer_is_lost_is_found_by_its_name(workspace, folder, fault):
    """On the last page of the list as on the first."""
    upload, call = upload_call(workspace, folder)
    workspace.system.arm(fault, path=COMPLETE)
    with pytest.raises(Ambiguous):
        upload.do(call)
    (file,) = workspace.system.objects("files")
    seen = upload.probe(call)
    assert (seen.seen, seen.reference) == ("applied", file["id"])
    assert workspace.system.count("file") == 1


def test_a_second_delivery_that_finds_no_file_to_make_is_unknown(workspace, folder):
    """A gateway that repeats the request passes on the answer to the repetition: `file_not_found`, and one file."""
    upload, call = upload_call(workspace, folder)
    body = {"ok": False, "error": "file_not_found"}
    workspace.system.arm("error_after_commit", path=COMPLETE, status=200, form="json", body=body)
    with pytest.raises(Ambiguous):
        upload.do(call)
    assert upload.probe(call).seen == "applied"


def test_an_answer_about_another_file_proves_nothing(workspace, folder):
    """A repeated answer names the file of another call."""
    upload, call = upload_call(workspace, folder)
    body = {"ok": True, "files": [{"id": "F0OTHER"}]}
    workspace.system.arm("answer_without_commit", path=COMPLETE, status=200, body=body)
    with pytest.raises(Ambiguous):
        upload.do(call)
    assert upload.probe(call).seen == "absent"


def test_a_file_that_is_never_shown_has_one_part_only(workspace, folder):
    """Slack said ok; the file is there, and nobody in the channel sees it: not a success."""
    workspace.system.configure(share_files=False)
    upload, call = upload_call(workspace, folder)
    done = workspace.done(upload, call)
    seen = upload.probe(done)
    assert (seen.seen, seen.parts, seen.state["share"]) == ("applied", ("file",), "none")
    assert not upload.contract.partial_inverse


def test_two_files_of_one_call_are_many_and_the_twin_goes_alone(workspace, folder):
    """Both bear our mark."""
    upload, call = upload_call(workspace, folder)
    done = workspace.done(upload, call)
    workspace.done(upload, call)
    seen = upload.probe(replace(call, reference=""))
    assert (seen.seen, len(seen.twins)) == ("many", 2)
    (twin,) = set(seen.twins) - {done.reference}
    assert workspace.undo(upload, replace(done, reference=twin), "delete").seen == "absent"
    assert upload.probe(done).seen == "applied"


def test_a_deleted_file_is_gone_from_the_channel_too(workspace, folder):
    """One request, verified by a separate read; the second finds nothing, and that is what was wanted."""
    upload, call = upload_call(workspace, folder)
    done = workspace.done(upload, call)
    assert workspace.undo(upload, done, "delete").seen == "absent"
    assert workspace.messages() == []
    assert workspace.undo(upload, done, "delete").seen == "absent"
    assert workspace.system.count("file") == 0


def test_a_file_that_may_not_be_deleted_is_corrected_in_its_thread(workspace, folder):
    """The refusal leads to the next rung."""
    workspace.system.configure(can_delete=False)
    upload, call = upload_call(workspace, folder)
    done = workspace.done(upload, call)
    with pytest.raises(Refused) as refused:
        workspace.undo(upload, done, "delete")
    assert refused.value.code == "cant_delete_file"
    state = upload.probe(done).state
    rungs = [r for r in upload.contract.compensation if all(state.get(k) in v for k, v in r.when.items())]
    assert [rung.name for rung in rungs] == ["delete", "thread_correction", "person"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../secret", "outside_folder"),
        ("/etc/hostname", "outside_folder"),
        ("link", "outside_folder"),
        ("none.csv", "unreadable_file"),
        ("large", "too_large"),
    ],
)
def test_only_files_of_the_folder_leave(workspace, folder, path, code):
    """Neither a path nor a link leads out of it, and nothing is sent."""
    (folder.parent / "secret").write_text("token")
    (folder / "link").symlink_to(folder.parent / "secret")
    (folder / "large").write_bytes(b"x" * 20)
    slack = workspace.slack
    slack.options = slack.options.model_copy(update={"max_file_bytes": 10})
    with pytest.raises(Refused) as refused:
        Upload(slack, folder).prepare(workspace.call({"channel": CHANNEL, "path": path}))
    assert refused.value.code == code
    assert workspace.system.requests() == []


def test_without_a_folder_nothing_may_be_uploaded(workspace):
    """The site has to say where uploads come from."""
    with pytest.raises(Refused) as refused:
        Upload(workspace.slack, None).prepare(workspace.call(ARGS))
    assert refused.value.code == "not_configured"


def test_a_file_that_changed_after_it_was_approved_is_not_sent(workspace, folder):
    """What was shown to the approver is what leaves (rule 30)."""
    upload, call = upload_call(workspace, folder)
    assert upload.prepare(call).content_digest == call.allocated["sha256"]
    (folder / "report.csv").write_bytes(b"other")
    with pytest.raises(Refused) as refused:
        upload.do(call)
    assert refused.value.code == "content_changed"
    assert workspace.system.requests() == []


def test_a_page_that_cannot_be_read_is_no_absence(workspace, folder):
    """The list of files, and the file itself."""
    upload, call = upload_call(workspace, folder)
    workspace.system.arm("refuse", method="reads", path="/api/files.*", status=429, times=2)
    assert upload.probe(call).seen == "inconclusive"
    assert upload.probe(replace(call, reference="F000001")).seen == "inconclusive"
