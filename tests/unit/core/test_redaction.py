"""Canaries: what may never enter the ledger is masked, and what is needed stays (rule 10)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.core.redaction import MASK, is_reference, redact, redact_text

# Assembled from parts, so that no secret scanner takes them for leaked ones.
PART = "Zk3vQ9wTx7LmN2pR5sYc"
KEY = f"-----BEGIN RSA {'PRIVATE'} KEY-----\n{PART}\n{PART}\n-----END RSA {'PRIVATE'} KEY-----"

CANARIES = {
    "bearer": (f"Authorization: Bearer {PART}", PART),
    "bearer alone": (f"sent bearer {PART} to it", PART),
    "basic": (f"authorization: Basic {PART}==", PART),
    "token scheme": (f"Authorization: token {PART}", PART),
    "URL userinfo": (f"https://jo:{PART}@git.test/repo.git", PART),
    "password with @": (f"https://jo:pa@{PART}@git.test/repo.git", PART),
    "userinfo without user": (f"redis://:{PART}@cache.test:6379/0", PART),
    "DSN": (f"postgresql+psycopg://app:{PART}@db.test/billing?sslmode=require", PART),
    "query token": (f"GET /v1/items?page=2&access_token={PART}&x=1", PART),
    "query key": (f"https://api.test/?api_key={PART}", PART),
    "query signature": (f"https://files.test/a?X-Sig-Signature={PART}", PART),
    "password field": (f"host=db password={PART} port=5", PART),
    "slack bot": (f"used {'xo' + 'xb'}-{PART} there", PART),
    "slack app": (f"used {'xa' + 'pp'}-1-{PART}", PART),
    "stripe": (f"key {'sk_' + 'live'}_{PART}", PART),
    "stripe restricted": (f"key {'rk_' + 'live'}_{PART}", PART),
    "github": (f"key {'gh' + 'p'}_{PART}{PART}", PART),
    "github fine-grained": (f"key {'github' + '_pat'}_{PART}_{PART}", PART),
    "gitlab": (f"key {'gl' + 'pat'}-{PART}", PART),
    "aws": ("key " + "AKIA" + "ABCDEFGHIJKLMNOP", "ABCDEFGHIJKLMNOP"),
    "jwt": (f"eyJ{PART}.{PART}.{PART}", PART),
    "private key": (f"read {KEY} from disk", PART),
    "private key cut short": (KEY[:60], PART),
}


@pytest.mark.parametrize("name", CANARIES)
def test_what_looks_like_a_secret_is_masked_in_text(name):
    """The canary is gone, wherever the text stands, and masking again changes nothing."""
    text, canary = CANARIES[name]
    masked = redact_text(text)
    assert canary not in masked
    assert MASK in masked
    assert redact_text(masked) == masked
    assert canary not in str(redact({"error": {"lines": [text]}, text: 1}))


@pytest.mark.parametrize(
    "text",
    [
        "moved BILL-12 to Done",
        "https://git.test/team/repo.git?page=2",
        "ssh://git@git.test/team/repo.git",
        "git@git.test:team/repo.git",
        "a token of thanks, and the basic idea",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "mail jo@x.test: ratio 3:4",
    ],
)
def test_what_is_needed_stays(text):
    """Hosts, paths, digests and plain words are evidence."""
    assert redact_text(text) == text


def test_the_host_stays_where_the_password_goes():
    """Evidence says where a call went."""
    assert redact_text(f"https://jo:{PART}@git.test/repo") == f"https://{MASK}@git.test/repo"


def test_known_secrets_are_masked_wherever_they_stand():
    """As a value, within text, as a key, and as they stand in a URL."""
    secret = "pa/ss wörd+1"
    held = {"note": f"sent {secret}!", secret: ["x", secret], "url": "/v1?q=pa%2Fss%20w%C3%B6rd%2B1"}
    assert redact(held, [secret]) == {"note": f"sent {MASK}!", MASK: ["x", MASK], "url": f"/v1?q={MASK}"}


@pytest.mark.parametrize("order", [1, -1])
def test_a_secret_that_begins_another_leaves_no_rest(order):
    """The longest is masked first, whatever the order they came in."""
    assert redact_text("it is correct-horse-battery.", ["correct-horse", "correct-horse-battery"][::order]) == (
        f"it is {MASK}."
    )


def test_very_short_secrets_are_not_hunted():
    """Masking `on` everywhere would destroy the record and tell more than it hides."""
    assert redact_text("switch it on", ["on"]) == "switch it on"
    assert redact_text("five5 sixsix", ["five5", "sixsix"]) == f"five5 {MASK}"


@pytest.mark.parametrize(
    "name", ["password", "api_key", "apiKey", "client_secret", "Authorization", "x-api-key", "TOKEN"]
)
def test_values_under_a_secrets_name_are_masked(name):
    """Whatever they look like, in lists and mappings too; a reference says where the secret is, and stays."""
    assert redact({name: "plain"}) == {name: MASK}
    assert redact({name: ["plain", {"value": "plain"}]}) == {name: [MASK, {"value": MASK}]}
    assert redact({name: "env:JIRA_TOKEN"}) == {name: "env:JIRA_TOKEN"}
    assert redact({name: ""}) == {name: ""}
    assert redact({"given": {name: "plain", "other": "plain"}}) == {"given": {name: MASK, "other": "plain"}}


@pytest.mark.parametrize("name", ["tokens_used", "idempotency_key", "author", "secretary", "key"])
def test_names_that_only_resemble_stay(name):
    """An idempotency key is needed to look again."""
    assert redact({name: "plain"}) == {name: "plain"}


@pytest.mark.parametrize(
    ("value", "yes"),
    [
        ("env:JIRA_TOKEN", True),
        ("file:/etc/keys/jira", True),
        ("env:", False),
        ("env:A B", False),
        ("x", False),
        (3, False),
        (None, False),
    ],
)
def test_a_reference_names_a_place(value, yes):
    """Only `env:` and `file:` with one word."""
    assert is_reference(value) is yes


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)


def shape(value):
    if isinstance(value, dict):
        return sorted(str(shape(item)) for item in value.values())
    if isinstance(value, list):
        return [shape(item) for item in value]
    return type(value).__name__


@given(json_values)
def test_the_structure_stays_and_masking_is_done_once(value):
    """Same shape, same types, and a second pass finds nothing."""
    masked = redact(value, ["correct-horse"])
    assert shape(masked) == shape(value)
    assert redact(masked, ["correct-horse"]) == masked


@given(st.text(), st.text())
def test_a_known_secret_never_passes(before, after):
    """Whatever stands around it."""
    assert "correct-horse" not in redact_text(f"{before}correct-horse{after}", ["correct-horse"])
