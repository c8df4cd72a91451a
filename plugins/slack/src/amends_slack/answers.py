"""What a Slack answer means: done, refused with nothing changed, or unknown. Pure; decides on structured fields only.

Slack says most things with HTTP 200 and `ok`. An error code this table does not know is *not* a refusal: the message
may be there, and the probe must say (rule 3).
"""

from __future__ import annotations

from collections.abc import Mapping

from amends.spi import Json, JsonMap, Refused
from amends.spi.http import Ambiguous, Unreadable

# The request was looked at and turned down before anything was written.
REFUSALS = frozenset(
    [
        "not_in_channel",
        "channel_not_found",
        "is_archived",
        "no_text",
        "msg_too_long",
        "too_many_attachments",
        "invalid_blocks",
        "invalid_blocks_format",
        "block_mismatch",
        "markdown_text_conflict",
        "invalid_arguments",
        "invalid_arg_name",
        "invalid_array_arg",
        "invalid_charset",
        "invalid_form_data",
        "invalid_json",
        "json_not_object",
        "invalid_post_type",
        "missing_post_type",
        "missing_post_data",
        "invalid_metadata_format",
        "invalid_metadata_schema",
        "metadata_too_large",
        "metadata_must_be_sent_from_app",
        "invalid_auth",
        "not_authed",
        "account_inactive",
        "token_revoked",
        "token_expired",
        "not_allowed_token_type",
        "no_permission",
        "missing_scope",
        "access_denied",
        "ekm_access_denied",
        "org_login_required",
        "two_factor_setup_required",
        "team_access_not_granted",
        "enterprise_is_restricted",
        "method_deprecated",
        "deprecated_endpoint",
        "unknown_method",
        "restricted_action",
        "restricted_action_read_only_channel",
        "restricted_action_thread_only_channel",
        "restricted_action_non_threadable_channel",
        "restricted_action_thread_locked",
        "cannot_reply_to_message",
        "thread_not_found",
        "message_not_found",
        "messages_tab_disabled",
        "as_user_not_supported",
        "cant_delete_message",
        "cant_update_message",
        "edit_window_closed",
        "compliance_exports_prevent_deletion",
        "invalid_time",
        "time_in_past",
        "time_too_far",
        "restricted_too_many",
        "invalid_scheduled_message_id",
        "bad_token",
        "user_not_found",
        "user_not_visible",
        "user_disabled",
        "users_not_found",
        "cannot_dm_bot",
        "cannot_find_channel",
        "slack_connect_file_link_sharing_blocked",
        "message_limit_exceeded",
        "invalid_user_id",
        "invalid_cursor",
        "invalid_limit",
    ]
)
# Turned down for now: the very same request may be sent later.
LATER = frozenset({"ratelimited", "rate_limited", "team_added_to_org"})


def accepted(answer: Json, retry_after_seconds: float | None = None) -> JsonMap:
    """The answer's fields if Slack says `ok: true`. Raises `Refused` on a proven refusal, `Ambiguous` otherwise."""
    if not isinstance(answer, dict) or not isinstance(answer.get("ok"), bool):
        raise Ambiguous("the answer is not a Slack answer", code="not_slack")
    if answer["ok"]:
        return answer
    code = error_code(answer)
    if code in LATER:
        raise Refused(f"slack answered `{code}`", code=code, again=True, retry_after_seconds=retry_after_seconds)
    if code in REFUSALS:
        raise Refused(f"slack answered `{code}`", code=code)
    raise Ambiguous(
        f"slack answered `{code or 'ok: false'}`, which does not prove that nothing was written",
        code=code or "not_ok",
    )


def readable(answer: Json) -> JsonMap:
    """The fields of an answer to a read. Raises `Unreadable` with Slack's code unless it says `ok: true`."""
    if not isinstance(answer, dict):
        raise Unreadable("the answer is not a Slack answer", code="not_slack")
    if answer.get("ok") is not True:
        code = error_code(answer)
        raise Unreadable(f"slack answered `{code or 'ok: false'}`", code=code or "not_ok")
    return answer


def posted_ts(answer: Mapping[str, Json], channel: str) -> str:
    """The ts of a message posted in `channel`. Raises `Ambiguous` if the answer lacks it or names another channel."""
    ts, where = answer.get("ts"), answer.get("channel")
    if not isinstance(ts, str) or not ts:
        raise Ambiguous("slack said ok but gave no ts", code="no_ts")
    if where != channel:
        raise Ambiguous(f"slack said ok for channel `{where}`, not `{channel}`", code="other_channel")
    return ts


def thread_of(answer: Mapping[str, Json]) -> str:
    """The `thread_ts` that the answer's message bears; empty if it stands at the top level."""
    message = answer.get("message")
    found = message.get("thread_ts") if isinstance(message, dict) else None
    return found if isinstance(found, str) else ""


def error_code(answer: Mapping[str, Json]) -> str:
    """Slack's error word; empty if there is none."""
    code = answer.get("error")
    return code if isinstance(code, str) else ""


def required_text(value: Json, otherwise: str) -> str:
    """`value` if it is text that is not empty. Raises `Unreadable` saying `otherwise`."""
    if not isinstance(value, str) or not value:
        raise Unreadable(otherwise, code="not_slack")
    return value
