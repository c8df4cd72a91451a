"""Canaries: what may never enter the ledger is masked, and what is needed stays (rule 10)."""

from __future__ import annotations

import base64
import html
import json
import unicodedata
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from amends.core import events as e
from amends.core.redaction import MASK, hide, is_reference, redact, redact_text, unfit

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
    "token before the host": (f"https://{PART}@git.test/repo.git", PART),
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


# --- a secret comes back in other forms than it was sent ------------------------------------------------------

ODD = "p\"a\\s<s w'\u00f6%rd+1/\u20ac\U0001f600x"
ECHOES = {
    "as it is": lambda s: s,
    "in an address": quote,
    "in a query": quote_plus,
    "percent-encoded whole": lambda s: quote(s, safe=""),
    "percent-encoded in lower case": lambda s: quote(s, safe="").lower() if s == s.lower() else quote(s),
    "in JSON": json.dumps,
    "in JSON as UTF-8": lambda s: json.dumps(s, ensure_ascii=False),
    "in JSON within JSON": lambda s: json.dumps(json.dumps(s)),
    "as Python writes it": repr,
    "as Python writes bytes": lambda s: repr(s.encode()),
    "in HTML": html.escape,
    "in HTML by number": lambda s: "".join(f"&#{ord(c)};" if not c.isalnum() else c for c in s),
    "in hexadecimal": lambda s: s.encode().hex(),
    "in upper-case hexadecimal": lambda s: s.encode().hex().upper(),
    "in a Basic header": lambda s: base64.b64encode(f"user:{s}".encode()).decode(),
    "in a Basic header of another length": lambda s: base64.b64encode(f"me:{s}!".encode()).decode(),
    "in base64 for addresses": lambda s: base64.urlsafe_b64encode(f"u:{s}".encode()).decode(),
    "in base64 over lines": lambda s: base64.encodebytes(f"{'u' * 50}:{s}".encode()).decode(),
    "broken over lines": lambda s: f"{s[:5]}\n    {s[5:]}",
    "decomposed": lambda s: unicodedata.normalize("NFD", s),
    "composed": lambda s: unicodedata.normalize("NFC", s),
    "cut short": lambda s: s[: len(s) - len(s) // 4],
}


def remains(text, secret):
    """The longest piece of the secret that a text still shows, in letters; of a code of it likewise."""
    forms = [secret, secret.encode().hex(), quote(secret), json.dumps(secret)[1:-1]]
    forms += [base64.b64encode(b" " * n + secret.encode()).decode()[2 * n :] for n in range(3)]
    pieces = {form[a : a + 8] for form in forms for a in range(max(1, len(form) - 7))}
    return sorted(piece for piece in pieces if piece in text)


@pytest.mark.parametrize("secret", [ODD, PART, "correct horse battery"], ids=["odd", "plain", "spaced"])
@pytest.mark.parametrize("how", ECHOES)
def test_a_secret_is_known_in_whatever_form_it_comes_back(how, secret):
    """Nothing of it remains that is worth having, and the words around it do."""
    echoed = ECHOES[how](secret)
    masked = redact_text(f"refused: {echoed} is unknown", [secret])
    assert MASK in masked
    assert masked.startswith("refused: ")
    assert masked.endswith(" is unknown")
    assert remains(masked, secret) == []


def test_the_search_for_what_remains_finds_what_a_plain_replacement_leaves():
    """The control: of an encoded, a broken or a cut secret, `str.replace` leaves pieces that the search above finds."""
    for how in ("in hexadecimal", "in a Basic header", "broken over lines", "cut short"):
        echoed = ECHOES[how](PART)
        assert remains(echoed.replace(PART, MASK), PART), how


def test_a_beginning_is_hidden_from_two_thirds_on_and_never_a_word_of_it():
    """`partner-token` begins like half of what a partner is called: those words are evidence, and stay."""
    assert redact_text("partner-7 said: partner-tok is wrong", ["partner-token"]) == (
        "partner-7 said: partner-tok is wrong"
    )
    assert redact_text("partner-toke…", ["partner-token"]) == f"{MASK}…"
    assert redact_text(f"{PART[:13]}…", [PART]) == f"{PART[:13]}…"
    assert redact_text(f"{PART[:14]}…{PART[:14]}", [PART]) == f"{MASK}…{MASK}"


def test_a_long_secret_is_found_by_its_beginning_and_masked_to_its_end():
    """Key files, tokens of a kilobyte: nothing of them stays behind the mask."""
    long = "".join(f"{n:03}{PART}" for n in range(200))
    assert redact_text(f"[{long}]", [long]) == f"[{MASK}]"
    assert redact_text(f"[{long[:3000]}]", [long]) == f"[{MASK}]"
    coded = base64.b64encode(long.encode()).decode()
    assert redact_text(f"[{coded}]", [long]).startswith(f"[{MASK}")
    assert len(redact_text(f"[{coded}]", [long])) < 20


def test_each_long_line_of_a_secret_of_several_is_a_secret():
    """A tool quotes the line of a key file that it cannot read."""
    key = f"head\n{PART}\n{PART[::-1]}\r\nshort"
    assert (
        redact_text(f"line 2: {PART}, line 3: {PART[::-1]}, short", [key]) == f"line 2: {MASK}, line 3: {MASK}, short"
    )


def test_the_password_within_a_secret_address_is_a_secret_too():
    """A driver says whose password is wrong without saying the address."""
    address = f"postgresql://app:{PART}%2Fx@db.test/billing"
    assert redact_text(f"no login with {PART}/x or {PART}%2Fx", [address]) == f"no login with {MASK} or {MASK}"
    assert redact_text("db.test says no to app", [address]) == "db.test says no to app"


def test_a_secret_that_the_mask_spells_is_not_hunted():
    """Masking it would never end."""
    assert redact_text("it was redacted", ["redacted"]) == "it was redacted"


def test_hide_masks_what_it_is_given_and_nothing_that_only_looks_so():
    """For those who know their secrets: their own mask, and shorter ones too."""
    assert hide("a1b2 password=x", ["a1b2"], mask="***", shortest=4) == "*** password=x"
    assert hide("a1b2", ["a1b2"]) == "a1b2"


@pytest.mark.parametrize("line_break", ["\n    ", "\r\n", "\\\n", "\\n", "\\r\\n"], ids=repr)
def test_a_break_may_fall_between_any_two_letters(line_break):
    """Found with a generated secret: the letters that were looked for first were the ones that the break parted."""
    for secret in ("00:000", "a:bcdefgh", r"k\new-word", PART):
        for place in range(1, len(secret)):
            assert redact_text(f"[{secret[:place]}{line_break}{secret[place:]}]", [secret]) == f"[{MASK}]"


secrets_of_any_kind = st.text(st.characters(exclude_categories=["Cs"]), min_size=6, max_size=40).filter(
    lambda s: s not in MASK and s.strip() == s and not set(s) <= set("\\\n\r\t +")
)


@given(secrets_of_any_kind, st.sampled_from(sorted(ECHOES)), st.text(max_size=10), st.text(max_size=10))
def test_any_secret_in_any_form_within_any_text(secret, how, before, after):
    """Generated secrets: Unicode, quotes, blanks, percent signs. Whole, they are never found again."""
    echoed = ECHOES[how](secret)
    masked = redact_text(f"{before}{echoed}{after}", [secret])
    assert MASK in masked or how == "cut short"
    assert secret not in masked.replace(MASK, "")


@given(secrets_of_any_kind, st.integers(1, 5), st.booleans())
def test_of_two_secrets_the_one_that_begins_the_other_is_hidden_too(secret, more, longer_first):
    """Neither leaves its rest, in whatever order they are known."""
    other = secret + "Zq9Lm"[:more]
    known = [other, secret] if longer_first else [secret, other]
    assert redact_text(f"<{other}|{secret}>", known) == f"<{MASK}|{MASK}>"


@pytest.mark.parametrize("secret", ["", "five5", "strength", "trengt", "recovery_decided", "https://u:holder@x/"])
def test_a_secret_that_masking_cannot_keep_out_is_unfit(secret):
    """Too short to be masked, or a part of what the ledger itself is written in: masked, no event could be read."""
    assert unfit(secret, e.words())


@pytest.mark.parametrize("secret", ["sixsix", "billing-token-of-acme", "https://u:hold@x.test/"])
def test_other_secrets_are_fit(secret):
    """Whatever else a person chooses."""
    assert unfit(secret, e.words()) == ""


def test_the_words_of_the_ledger_are_all_that_an_event_must_be_written_in():
    """Names of fields at any depth, kinds, statuses: an event in which one that is not known here is masked is lost."""
    schema = json.dumps(TypeAdapter(e.Body).json_schema())

    def fixed(part):
        if isinstance(part, list):
            return {word for item in part for word in fixed(item)}
        if not isinstance(part, dict):
            return set()
        own = {*part.get("properties", {}), *map(str, part.get("enum", ())), str(part.get("const", "run_moved"))}
        return own.union(*(fixed(item) for item in part.values()))

    assert fixed(json.loads(schema)) == e.words()
