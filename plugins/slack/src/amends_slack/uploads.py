"""`slack.upload`: a file shown in a channel.

Three requests, of which people see one: an address is reserved, the bytes go there, and completing makes the file and
shows it. Slack shows it some time after it has said ok, and sometimes never: both parts are looked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from amends.spi import Call, Capability, Done, Json, JsonMap, NotSent, Observation, Prepared, Question, Receipt, Refused
from amends.spi.http import Ambiguous, Unreadable
from amends_slack import contracts, search
from amends_slack.arguments import UploadArgs
from amends_slack.client import Slack
from amends_slack.places import place, text_of

_GONE = frozenset({"file_not_found", "file_deleted"})
_REQUESTS = 3  # they share the call's time-out


class Upload(Capability):
    """One file of the `files` folder. Its name at Slack begins with our marker: files carry no metadata."""

    arguments = UploadArgs

    def __init__(self, slack: Slack, folder: Path | None) -> None:
        self.contract = contracts.upload(slack.options)
        self._slack = slack
        self._folder = folder

    def prepare(self, question: Question) -> Prepared:
        """Read the file: an approval binds its content (rule 30). Raises `Refused` if it may not or cannot be read."""
        content = self._content(UploadArgs.model_validate(dict(question.args)))
        return Prepared(allocated={"sha256": _sha256(content)}, content_digest=_sha256(content))

    def do(self, call: Call) -> Receipt:
        args = UploadArgs.model_validate(dict(call.args))
        content = self._content(args)
        if _sha256(content) != call.allocated.get("sha256"):
            raise Refused(f"`{args.path}` has changed since it was prepared", code="content_changed")
        call = replace(call, timeout_seconds=call.timeout_seconds / _REQUESTS)
        name = f"{_prefix(call)}{Path(args.path).name}"
        form = {"filename": name, "length": str(len(content))}
        reserved = self._slack.reserve(call, "files.getUploadURLExternal", form)
        number, address = text_of(reserved.get("file_id")), text_of(reserved.get("upload_url"))
        if not number or not address:
            raise NotSent("nothing was done: slack gave no address to upload to", code="not_slack")
        self._slack.put(call, address, content)
        shown: JsonMap = {"id": number, "title": args.title or Path(args.path).name}
        answer = self._slack.write(call, "files.completeUploadExternal", {"files": [shown], "channel_id": args.channel})
        made = answer.get("files")
        if not isinstance(made, list) or not any(isinstance(file, dict) and file.get("id") == number for file in made):
            raise Ambiguous("slack said ok but names another file", code="other_file")
        return Done(
            effect={"file": number, "channel": args.channel},
            reference=number,
            output={"file": number},
            after={"file": "present"},
            parts=("file",),
        )

    def probe(self, question: Question) -> Observation:
        """By id, else by the marker in the name; then whether it is shown in the channel."""
        number = question.reference or text_of(question.effect.get("file"))
        read = self._slack.reader(question)
        try:
            if number:
                info = read("files.info", {"file": number}).get("file")
                return _seen([info] if isinstance(info, dict) else [], question)
        except Unreadable as unreadable:
            if unreadable.code in _GONE:
                return Observation(seen="absent", state={"file": "gone"}, reference=number)
            return Observation(seen="inconclusive", detail=str(unreadable))
        listing = search.files(read, search.window_start(question, self._slack.options.clock_margin_seconds))
        ours = [file for file in listing.items if text_of(file.get("name")).startswith(_prefix(question))]
        if not ours and not listing.complete:
            return Observation(seen="inconclusive", detail=listing.detail)
        return _seen(ours, question)

    def undo(self, call: Call) -> Receipt:
        """Delete the file, wherever it is shown. One that is gone already is done; the read that follows decides."""
        number = call.reference or (call.observed.reference if call.observed is not None else "")
        if not number:
            raise Refused("the file's id is not known, so nothing can be taken back", code="id_unknown")
        self._slack.write(call, "files.delete", {"file": number})
        return Done(reference=number, after={"file": "gone"})

    def place(self, question: Question) -> str:
        return place(text_of(question.args.get("channel")), text_of(question.effect.get("ts")))

    def _content(self, args: UploadArgs) -> bytes:
        if self._folder is None:
            raise Refused("no `files` folder is configured, so nothing may be uploaded", code="not_configured")
        folder = self._folder.resolve()
        path = (folder / args.path).resolve()
        if not path.is_relative_to(folder):
            raise Refused(f"`{args.path}` is outside the `files` folder", code="outside_folder")
        try:
            with path.open("rb") as file:
                content = file.read(self._slack.options.max_file_bytes + 1)
        except OSError as error:
            raise Refused(f"`{args.path}` cannot be read: {type(error).__name__}", code="unreadable_file") from None
        if len(content) > self._slack.options.max_file_bytes:
            raise Refused(f"`{args.path}` has more than {self._slack.options.max_file_bytes} bytes", code="too_large")
        return content


def _seen(files: list[JsonMap], question: Question) -> Observation:
    """What files bearing our marker say."""
    channel = text_of(question.args.get("channel"))
    refs = tuple(text_of(file.get("id")) for file in files)
    if not refs:
        return Observation(seen="absent", state={"file": "gone"})
    kept = files[refs.index(question.reference)] if question.reference in refs else files[0]
    ts = _shown_ts(kept, channel)
    effect: JsonMap = {"file": text_of(kept.get("id")), "channel": channel}
    if ts:
        effect["ts"] = ts
    return Observation(
        seen="many" if len(refs) > 1 else "applied",
        state={"file": "present", "share": "shown" if ts else "none"},
        effect=effect,
        reference=text_of(kept.get("id")),
        parts=("file", "share") if ts else ("file",),
        twins=refs if len(refs) > 1 else (),
        detail="" if ts else "the file is there, but not shown in the channel",
    )


def _shown_ts(file: Mapping[str, Json], channel: str) -> str:
    """The ts of the message that shows the file in `channel`; empty if none does."""
    shares = file.get("shares")
    for kind in shares.values() if isinstance(shares, dict) else ():
        found = kind.get(channel) if isinstance(kind, dict) else None
        for share in found if isinstance(found, list) else ():
            if isinstance(share, dict) and text_of(share.get("ts")):
                return text_of(share.get("ts"))
    return ""


def _prefix(question: Question) -> str:
    return f"{question.marker}-"


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
