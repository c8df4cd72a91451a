"""Arguments of the Slack capabilities. Strict: unknown fields and wrong types are refused; none holds a secret."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from amends.spi import Json

ChannelId = Annotated[str, Field(pattern=r"^[CDG][A-Z0-9_]+$")]  # an id: names move, and chat.delete takes no name
Ts = Annotated[str, Field(pattern=r"^\d{1,12}\.\d{1,9}$")]
Text = Annotated[str, Field(min_length=1, max_length=40_000)]
Block = dict[str, Json]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PostArgs(_Arguments):
    """A message at the top level of a channel."""

    channel: ChannelId
    text: Text
    blocks: list[Block] = Field(default_factory=list[Block], max_length=50)


class ReplyArgs(PostArgs):
    """A message in a thread; `thread_ts` may be the root or any reply of it."""

    thread_ts: Ts


class UpdateArgs(PostArgs):
    """A new text for a message this bot wrote."""

    ts: Ts


class DeleteArgs(_Arguments):
    """A message to take away."""

    channel: ChannelId
    ts: Ts


class ScheduleArgs(_Arguments):
    """A message that Slack posts at `post_at` (seconds since the epoch)."""

    channel: ChannelId
    text: Text
    post_at: int = Field(gt=0)


class EphemeralArgs(_Arguments):
    """A message in a channel that only `person` sees, who is named in the `people` option."""

    channel: ChannelId
    person: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,80}$")
    text: Text


class UploadArgs(_Arguments):
    """A file of the `files` folder, shown in a channel."""

    channel: ChannelId
    path: str = Field(min_length=1, max_length=400, pattern=r"^[^\x00]+$")
    title: str = Field(default="", max_length=200)
