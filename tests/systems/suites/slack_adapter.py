"""The life of every effect of the Slack adapter, on any system that speaks the Web API.

Each function makes an effect through the adapter, finds it again without its answer, takes it back and looks. The
workspace is the one that `slack.py` needs. `problems(system, base_url, token)` is empty if all lives go as they should.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from amends.spi import Call, Capability, Json, Observation
from amends.spi.http import HttpSender
from amends.testing.differences import Behaviour, Difference, Site
from amends.testing.differences import problems as compared
from amends_slack.client import Slack
from amends_slack.correctors import PersonNote, ThreadCorrection
from amends_slack.edits import Delete, Update
from amends_slack.ephemeral import Ephemeral
from amends_slack.messages import Post, Reply
from amends_slack.options import SlackOptions
from amends_slack.schedule import Schedule
from amends_slack.uploads import Upload

_numbers = itertools.count(1)


def problems(system: str, base_url: str, token: str) -> list[str]:
    """What is not as this page says of `system` (`loopback` or `emulator`); empty if all is."""
    return compared(LIVES, DIFFERENCES, system=system, site=Site(base_url, token))


class Action:
    """One action as the engine carries it: prepare, do, probe, undo by a rung, verify."""

    def __init__(self, site: Site, capability: Capability, args: Mapping[str, Json]) -> None:
        self.capability = capability
        now_us = time.time_ns() // 1000
        marker = f"life-{now_us}-{next(_numbers)}"
        self.call = Call(
            run_id="run-1", action_id=marker, marker=marker, idempotency_key=f"key-{marker}", args=args, before={},
            allocated={}, effect={}, after={}, reference="", attempt=1, sent_at_us=now_us, timeout_seconds=10.0,
            secret=lambda _: site.token, deadline_us=now_us + 10_000_000, still_wanted=lambda: True,
        )  # fmt: skip
        prepared = capability.prepare(self.call)
        self.call = replace(self.call, before=prepared.before, allocated=prepared.allocated)
        self.unanswered = self.call

    def done(self) -> Action:
        receipt = self.capability.do(self.call)
        after: Mapping[str, Json] = getattr(receipt, "after", {})
        self.call = replace(self.call, effect=receipt.effect, reference=receipt.reference, after=after)
        return self

    def probe(self) -> Observation:
        return self.capability.probe(self.call)

    def found_without_its_answer(self) -> Observation:
        """As recovery looks when the answer was lost."""
        return self.capability.probe(self.unanswered)

    def rung(self) -> str:
        """The rung that the contract's ladder gives for what is seen now."""
        state = self.probe().state
        ladder = self.capability.contract.compensation
        fits = (rung for rung in ladder if all(state.get(name) in value for name, value in rung.when.items()))
        return next(fits).name

    def undone(self, rung: str = "") -> Observation:
        seen = self.probe()
        undo = replace(self.call, rung=rung or self.rung(), undo_key="u", undo_marker="undo-1", observed=seen)
        self.capability.undo(undo)
        return self.capability.verify_undone(self.call)


def options(site: Site) -> SlackOptions:
    person = site.call("POST", "users.lookupByEmail", form={"email": "maya@example.test"}).json["user"]["id"]
    return SlackOptions(base_url=site.base_url, people={"maya": person})


def slack(site: Site) -> Slack:
    return Slack(options(site), HttpSender())


def channel(site: Site) -> str:
    listed = site.call("POST", "conversations.list", form={}).json["channels"]
    return next(str(item["id"]) for item in listed if item["name"] == "amends")


def posted(site: Site) -> Action:
    return Action(site, Post(slack(site)), {"channel": channel(site), "text": "billing field is live"}).done()


def reply_to(site: Site, ts: Any) -> Action:
    return Action(site, Reply(slack(site)), {"channel": channel(site), "text": "and tested", "thread_ts": ts})


def same(seen: Observation, action: Action) -> None:
    assert (seen.seen, seen.reference) == ("applied", action.call.reference), seen


# --- lives -----------------------------------------------------------------------------


def a_post_is_found_and_deleted(site: Site) -> None:
    post = posted(site)
    same(post.found_without_its_answer(), post)
    same(post.probe(), post)
    assert post.rung() == "delete", post.probe()
    assert post.undone().state == {"message": "gone"}
    assert post.found_without_its_answer().seen == "absent"


def a_post_that_somebody_reacted_to_is_withdrawn(site: Site) -> None:
    post = posted(site)
    reaction = {"channel": channel(site), "timestamp": post.call.effect["ts"], "name": "eyes"}
    assert site.call("POST", "reactions.add", reaction).json["ok"]
    assert post.rung() == "withdraw", post.probe()
    assert post.undone().state == {"message": "withdrawn"}
    assert post.found_without_its_answer().seen == "absent"


def a_post_that_somebody_edited_is_left_alone(site: Site) -> None:
    post = posted(site)
    edit = {"channel": channel(site), "ts": post.call.effect["ts"], "text": "theirs"}
    assert site.call("POST", "chat.update", edit).json["ok"]
    assert post.probe().seen == "diverged"


def two_posts_of_one_action_are_many(site: Site) -> None:
    post = posted(site).done()
    seen = post.probe()
    assert (seen.seen, len(seen.twins), seen.reference) == ("many", 2, post.call.reference), seen


def a_reply_stands_in_its_thread_and_is_deleted(site: Site) -> None:
    root = posted(site).call.effect["ts"]
    first = reply_to(site, root).done()
    second = reply_to(site, first.call.effect["ts"]).done()
    assert second.call.effect["thread_ts"] == root, second.call.effect
    same(second.found_without_its_answer(), second)
    assert second.undone("delete").seen == "absent"
    same(first.probe(), first)


def a_reply_at_the_top_level_is_diverged(site: Site) -> None:
    reply = reply_to(site, posted(site).call.effect["ts"])
    stray = {"channel": channel(site), "text": "stray", "metadata": _metadata(reply)}
    assert site.call("POST", "chat.postMessage", stray).json["ok"]
    seen = reply.found_without_its_answer()
    assert (seen.seen, seen.state["thread"]) == ("diverged", "none"), seen


def a_reply_shown_to_the_channel_is_diverged(site: Site) -> None:
    root = posted(site).call.effect["ts"]
    reply = reply_to(site, root)
    said = {"channel": channel(site), "text": "loud", "thread_ts": root, "reply_broadcast": True}
    assert site.call("POST", "chat.postMessage", {**said, "metadata": _metadata(reply)}).json["ok"]
    seen = reply.found_without_its_answer()
    assert (seen.seen, seen.state["thread"]) == ("diverged", "broadcast"), seen


def an_update_is_found_and_restored(site: Site) -> None:
    post = posted(site)
    args = {"channel": channel(site), "ts": post.call.effect["ts"], "text": "billing field is off"}
    update = Action(site, Update(slack(site)), args)
    assert update.found_without_its_answer().seen == "absent"
    update.done()
    same(update.found_without_its_answer(), update)
    assert update.undone("restore").seen == "absent"
    same(post.probe(), post)


def a_delete_is_seen_by_looking(site: Site) -> None:
    args = {"channel": channel(site), "ts": posted(site).call.effect["ts"]}
    delete = Action(site, Delete(slack(site)), args)
    assert delete.probe().seen == "absent"
    delete.done()
    assert delete.found_without_its_answer().seen == "applied"
    assert delete.done().probe().seen == "applied"


def a_scheduled_message_is_found_and_taken_back(site: Site) -> None:
    at = time.time_ns() // 1_000_000_000 + 7200
    args: dict[str, Json] = {"channel": channel(site), "text": f"maintenance {next(_numbers)} {at}", "post_at": at}
    schedule = Action(site, Schedule(slack(site)), args).done()
    same(schedule.found_without_its_answer(), schedule)
    assert schedule.undone("unschedule").seen == "absent"
    assert schedule.undone("unschedule").seen == "absent"


def an_ephemeral_message_is_shown(site: Site) -> None:
    args = {"channel": channel(site), "person": "maya", "text": "for you"}
    assert Action(site, Ephemeral(slack(site)), args).done().probe().seen == "inconclusive"


def an_upload_has_two_parts_and_is_deleted(site: Site) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "table.csv").write_bytes(b"a;b\n1;2\n")
        args = {"channel": channel(site), "path": "table.csv"}
        upload = Action(site, Upload(slack(site), Path(folder)), args).done()
    same(upload.found_without_its_answer(), upload)
    assert set(upload.probe().parts) == {"file", "share"}, upload.probe()
    assert upload.probe().effect["ts"], upload.probe()
    assert upload.undone("delete").seen == "absent"
    assert upload.found_without_its_answer().seen == "absent"


def a_correction_stands_in_the_thread(site: Site) -> None:
    post = posted(site)
    args = {"place": f"slack:{post.call.reference}", "text": "run-1: reverted. Do nothing."}
    correction = Action(site, ThreadCorrection(slack(site)), args)
    assert correction.found_without_its_answer().seen == "absent"
    correction.done()
    same(correction.found_without_its_answer(), correction)
    assert correction.call.effect["thread_ts"] == post.call.effect["ts"]
    assert post.probe().state["answered"] == "no", "our own correction is nobody's answer"


def a_note_reaches_the_person(site: Site) -> None:
    args = {"place": "person:maya", "text": "run-1: reverted. Do nothing."}
    note = Action(site, PersonNote(slack(site)), args)
    assert note.found_without_its_answer().seen == "absent"
    note.done()
    same(note.found_without_its_answer(), note)


def _metadata(action: Action) -> dict[str, Any]:
    return {"event_type": "amends_action", "event_payload": {"amends_action": action.call.marker}}


LIVES: tuple[Behaviour, ...] = (
    a_post_is_found_and_deleted,
    a_post_that_somebody_reacted_to_is_withdrawn,
    a_post_that_somebody_edited_is_left_alone,
    two_posts_of_one_action_are_many,
    a_reply_stands_in_its_thread_and_is_deleted,
    a_reply_at_the_top_level_is_diverged,
    a_reply_shown_to_the_channel_is_diverged,
    an_update_is_found_and_restored,
    a_delete_is_seen_by_looking,
    a_scheduled_message_is_found_and_taken_back,
    an_ephemeral_message_is_shown,
    an_upload_has_two_parts_and_is_deleted,
    a_correction_stands_in_the_thread,
    a_note_reaches_the_person,
)

DIFFERENCES: tuple[Difference, ...] = ()
