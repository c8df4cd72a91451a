"""Slack's error words, by what they prove about the request that got them. Data only.

A word in none of the tables proves nothing: the message may be there, and the probe must say (rule 3).
"""

from __future__ import annotations

from collections.abc import Mapping

_SIGN_IN = frozenset(
    [
        "access_denied",
        "accesslimited",
        "account_inactive",
        "ekm_access_denied",
        "enterprise_is_restricted",
        "invalid_auth",
        "missing_scope",
        "no_permission",
        "not_allowed_token_type",
        "not_authed",
        "org_login_required",
        "team_access_not_granted",
        "team_not_found",
        "token_expired",
        "token_revoked",
        "two_factor_setup_required",
    ]
)
_REQUEST = frozenset(
    [
        "block_mismatch",
        "deprecated_endpoint",
        "invalid_arg_name",
        "invalid_arguments",
        "invalid_array_arg",
        "invalid_attachments",
        "invalid_blocks",
        "invalid_blocks_format",
        "invalid_charset",
        "invalid_cursor",
        "invalid_form_data",
        "invalid_json",
        "invalid_limit",
        "invalid_metadata_format",
        "invalid_metadata_schema",
        "invalid_post_type",
        "json_not_object",
        "malformed_arguments",
        "markdown_text_conflict",
        "metadata_must_be_sent_from_app",
        "metadata_too_large",
        "method_deprecated",
        "missing_argument",
        "missing_post_data",
        "missing_post_type",
        "unknown_method",
    ]
)
_PLACE = frozenset(
    [
        "as_user_not_supported",
        "cannot_dm_bot",
        "cannot_find_channel",
        "cannot_reply_to_message",
        "channel_not_found",
        "channel_type_not_supported",
        "external_channel_migrating",
        "invalid_channel",
        "invalid_user_combination",
        "invalid_user_id",
        "is_archived",
        "is_inactive",
        "messages_tab_disabled",
        "method_not_supported_for_channel_type",
        "not_enough_users",
        "not_in_channel",
        "posting_to_channel_denied",
        "restricted_action",
        "restricted_action_non_threadable_channel",
        "restricted_action_read_only_channel",
        "restricted_action_thread_locked",
        "restricted_action_thread_only_channel",
        "thread_not_found",
        "too_many_users",
        "user_disabled",
        "user_not_found",
        "user_not_in_channel",
        "user_not_visible",
        "users_list_not_supplied",
        "users_not_found",
    ]
)
_CONTENT = frozenset(
    [
        "attachment_payload_limit_exceeded",
        "message_limit_exceeded",
        "msg_blocks_too_long",
        "msg_too_long",
        "no_text",
        "slack_connect_blocked_file_type",
        "slack_connect_canvas_sharing_blocked",
        "slack_connect_clip_sharing_blocked",
        "slack_connect_file_link_sharing_blocked",
        "slack_connect_file_upload_sharing_blocked",
        "slack_connect_lists_sharing_blocked",
        "too_many_attachments",
        "too_many_contact_cards",
    ]
)
_CHANGES = frozenset(
    [
        "cant_broadcast_message",
        "cant_delete_message",
        "cant_update_message",
        "compliance_exports_prevent_deletion",
        "edit_window_closed",
        "message_not_found",
    ]
)
_SCHEDULE = frozenset(
    ["bad_token", "invalid_scheduled_message_id", "invalid_time", "restricted_too_many", "time_in_past", "time_too_far"]
)
_FILES = frozenset(
    [
        "alt_txt_too_large",
        "blocked_file_type",
        "cant_delete_file",
        "file_deleted",
        "file_not_found",
        "file_upload_size_restricted",
        "file_uploads_disabled",
        "file_uploads_except_images_disabled",
        "snippet_too_large",
        "storage_limit_reached",
        "unknown_snippet_type",
    ]
)

# The request was looked at and turned down before anything was written.
REFUSED = _SIGN_IN | _REQUEST | _PLACE | _CONTENT | _CHANGES | _SCHEDULE | _FILES

# Turned down for now: the very same request may be sent later.
LATER = frozenset({"ratelimited", "rate_limited", "team_added_to_org"})

# Slack says itself that something may have been done, or that it does not know.
IN_DOUBT = frozenset(
    [
        "fatal_error",
        "file_update_failed",
        "internal_error",
        "operation_timeout",
        "request_timeout",
        "service_unavailable",
        "update_failed",
    ]
)

# What the call was to bring about holds already: done by our own first try, or by somebody else.
ALREADY: Mapping[str, frozenset[str]] = {
    "chat.delete": frozenset({"message_not_found"}),
    "chat.deleteScheduledMessage": frozenset({"invalid_scheduled_message_id"}),
    "files.delete": frozenset({"file_not_found", "file_deleted"}),
}

# A refusal elsewhere; here also what a second delivery hears after the first one has done it.
IN_DOUBT_FOR: Mapping[str, frozenset[str]] = {"files.completeUploadExternal": frozenset({"file_not_found"})}
