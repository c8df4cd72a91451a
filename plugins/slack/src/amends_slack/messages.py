"""`slack.post` and `slack.reply`."""

from __future__ import annotations

import json

from amends.spi import Call, Capability, Observation, Prepared, Question, Receipt
from amends_slack import contracts, posting, search
from amends_slack.arguments import PostArgs, ReplyArgs
from amends_slack.client import Slack
from amends_slack.places import known_ts, place, text_of
from amends_slack.search import Listing, Read


class Post(Capability):
    """A message at the top level of a channel."""

    arguments = PostArgs

    def __init__(self, slack: Slack) -> None:
        self.contract = contracts.post(slack.options)
        self._slack = slack

    def prepare(self, question: Question) -> Prepared:
        args = PostArgs.model_validate(dict(question.args))
        return Prepared(input={"mentions_everyone": _everyone(args)})

    def do(self, call: Call) -> Receipt:
        args = PostArgs.model_validate(dict(call.args))
        return posting.send(self._slack, call, args.channel, args.text, blocks=args.blocks)

    def probe(self, question: Question) -> Observation:
        channel = text_of(question.args.get("channel"))
        start = search.window_start(question, self._slack.options.clock_margin_seconds, known_ts(question, channel))
        return posting.observe(search.history(self._slack.reader(question), channel, start), question, channel)

    def undo(self, call: Call) -> Receipt:
        args = PostArgs.model_validate(dict(call.args))
        return posting.take_back(self._slack, call, args.channel, had_blocks=bool(args.blocks))

    def verify_undone(self, question: Question) -> Observation:
        channel = text_of(question.args.get("channel"))
        seen = posting.verify_taken_back(self._slack.reader(question), question, channel)
        return seen or self.probe(question)

    def place(self, question: Question) -> str:
        channel = text_of(question.args.get("channel"))
        return place(channel, known_ts(question, channel))


class Reply(Capability):
    """A message in a thread."""

    arguments = ReplyArgs

    def __init__(self, slack: Slack) -> None:
        self.contract = contracts.reply(slack.options)
        self._slack = slack

    def prepare(self, question: Question) -> Prepared:
        args = ReplyArgs.model_validate(dict(question.args))
        root = posting.root_of(self._slack.reader(question), args.channel, args.thread_ts)
        return Prepared(allocated={"root_ts": root}, input={"mentions_everyone": _everyone(args)})

    def do(self, call: Call) -> Receipt:
        args = ReplyArgs.model_validate(dict(call.args))
        return posting.send(self._slack, call, args.channel, args.text, blocks=args.blocks, thread=_root(call))

    def probe(self, question: Question) -> Observation:
        channel = text_of(question.args.get("channel"))
        read = self._slack.reader(question)
        return look_in_thread(read, question, channel, _root(question), self._slack.options.clock_margin_seconds)

    def undo(self, call: Call) -> Receipt:
        args = ReplyArgs.model_validate(dict(call.args))
        return posting.take_back(self._slack, call, args.channel, had_blocks=bool(args.blocks))

    def verify_undone(self, question: Question) -> Observation:
        channel = text_of(question.args.get("channel"))
        seen = posting.verify_taken_back(self._slack.reader(question), question, channel)
        return seen or self.probe(question)

    def place(self, question: Question) -> str:
        """The thread itself: known even while the reply's own ts is not."""
        return place(text_of(question.args.get("channel")), _root(question))


def look_in_thread(read: Read, question: Question, channel: str, root: str, margin_seconds: float) -> Observation:
    """Look for our marker in the thread; one that stands at the top level, alone or as well, is `diverged`."""
    thread = search.replies(read, channel, root)
    if thread.code == "thread_not_found":
        thread = Listing((), complete=True)
    seen = posting.observe(thread, question, channel)
    if any(posting.is_broadcast(item) for item in thread.marked(question.marker)):
        return _elsewhere(seen, "broadcast", "the whole channel was shown the reply")
    if seen.seen != "absent" or seen.reference:
        return seen
    top = search.history(read, channel, search.window_start(question, margin_seconds))
    stray = tuple(item for item in top.marked(question.marker) if not item.get("thread_ts"))
    if stray:
        found = posting.observe(Listing(stray, complete=True), question, channel)
        return _elsewhere(found, "none", "posted outside its thread")
    return seen if top.complete else Observation(seen="inconclusive", detail=top.detail)


def _elsewhere(found: Observation, thread: str, detail: str) -> Observation:
    state = {**found.state, "thread": thread}
    return found.model_copy(update={"seen": "diverged", "state": state, "detail": detail})


def _root(question: Question) -> str:
    """The thread's root as `prepare` or a probe found it; else what the arguments say."""
    known = text_of(question.allocated.get("root_ts")) or text_of(question.effect.get("thread_ts"))
    return known or text_of(question.args.get("thread_ts"))


def _everyone(args: PostArgs) -> bool:
    return posting.mentions_everyone(args.text, json.dumps(args.blocks))
