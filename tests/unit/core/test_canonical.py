"""The canonical form: what is the same value, what has no form, and digests that must never change (rule 5)."""

from __future__ import annotations

import json
import unicodedata
from collections import UserDict
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.core.canonical import (
    FORM,
    MAX_BYTES,
    MAX_DEPTH,
    canonical_bytes,
    canonical_text,
    digest,
    keyed_digest,
    normalise,
    normalise_map,
)
from amends.core.errors import InvalidInput
from amends.core.status import Outcome

NFC = unicodedata.normalize("NFC", "é")
NFD = unicodedata.normalize("NFD", "é")

SAME = [
    pytest.param(1, 1.0, id="whole float is its integer"),
    pytest.param(0, -0.0, id="minus zero is zero"),
    pytest.param(NFC, NFD, id="composed and decomposed text"),
    pytest.param({NFC: 1}, {NFD: 1}, id="composed and decomposed key"),
    pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, id="key order"),
    pytest.param((1, 2), [1, 2], id="tuple and list"),
    pytest.param(UserDict(a=1), {"a": 1}, id="any mapping"),
    pytest.param(2**60, str(2**60), id="integer beyond 2**53 is text"),
    pytest.param(2.0**60, 2**60, id="whole float beyond 2**53 is its integer"),
    pytest.param(-(2**60), str(-(2**60)), id="negative integer beyond 2**53 is text"),
    pytest.param(Decimal("1.10"), "1.1", id="decimal is text without trailing zeros"),
    pytest.param(Decimal("1E+3"), "1000", id="decimal is never in exponent form"),
    pytest.param(Decimal("1E-9"), "0.000000001", id="small decimal is not in exponent form either"),
    pytest.param(Decimal("-0.00"), "0", id="decimal minus zero is zero"),
    pytest.param(Outcome.FAILED, "failed", id="enum is its value"),
    pytest.param(UUID(int=7), "00000000-0000-0000-0000-000000000007", id="uuid is text"),
    pytest.param(date(2026, 1, 2), "2026-01-02", id="date is text"),
    pytest.param(datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00", id="aware datetime is text"),
]
DIFFERENT = [
    pytest.param(0.1 + 0.2, 0.3, id="floats are compared exactly"),
    pytest.param(1, True, id="true is no number"),
    pytest.param(1, "1", id="a number is no text"),
    pytest.param({"a": None}, {}, id="null is not missing"),
    pytest.param(2**53 - 1, str(2**53 - 1), id="the greatest safe integer stays a number"),
    pytest.param("", None, id="empty text is not null"),
    pytest.param([], {}, id="empty list is no mapping"),
    pytest.param("a", "A", id="case matters"),
]
WITHOUT_FORM = [
    pytest.param(float("nan"), "is not finite", id="NaN"),
    pytest.param(float("inf"), "is not finite", id="infinity"),
    pytest.param(Decimal("NaN"), "is not finite", id="decimal NaN"),
    pytest.param(Decimal("-Infinity"), "is not finite", id="decimal infinity"),
    pytest.param("\ud800", "lone surrogate", id="lone surrogate"),
    pytest.param({"\udfff": 1}, "lone surrogate", id="lone surrogate in a key"),
    pytest.param({1: "a", "1": "b"}, "is not text", id="keys 1 and '1'"),
    pytest.param({None: 1}, "is not text", id="null key"),
    pytest.param({NFC: 1, NFD: 2}, "two keys", id="two spellings of one key"),
    pytest.param(b"bytes", "cannot be recorded", id="bytes"),
    pytest.param({1, 2}, "cannot be recorded", id="set"),
    pytest.param(object(), "cannot be recorded", id="object"),
    pytest.param(datetime(2026, 1, 2), "no time zone", id="naive datetime"),  # noqa: DTZ001
]
GOLDEN = [
    (None, "a1:74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"),
    ({}, "a1:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
    (
        {"name": "billing", "count": 1.0, "big": 2**60, "none": None},
        "a1:860669b8013bc5c4691b8ef20bd35bf8e25bd305707eefba9372d52f2242a0d4",
    ),
    (
        ["é", "\u0065\u0301", 0.30000000000000004, 1e21, -1.5],
        "a1:125d264b2ff0fce0ff5868a7d5ec2f39313d2073dd9cd2f373ed9a2d134d5fb0",
    ),
    (
        {"price": Decimal("19.90"), "nested": {"b": [True, False], "a": {}}},
        "a1:19a447e0665fe4bc473db1280d85f63ee586b35c28a803b813b8e6313aca91a3",
    ),
]
KEYED = "a1:0908f257ac054d02ef0baffee2d75fc70a2a23d84ef01f77b80f40448abc6766"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)


def has_form(value) -> bool:
    try:
        canonical_bytes(value)
    except InvalidInput:
        return False
    return True


formed = json_values.filter(has_form)


def nested(levels: int):
    value: object = 0
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(("one", "other"), SAME)
def test_values_of_one_meaning_have_one_form(one, other):
    """Wording of a value never makes a second key."""
    assert canonical_bytes(one) == canonical_bytes(other)
    assert digest(one) == digest(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_values_of_different_meaning_differ(one, other):
    """Two intents never share a key because their arguments look alike."""
    assert canonical_bytes(one) != canonical_bytes(other)


@pytest.mark.parametrize(("value", "why"), WITHOUT_FORM)
def test_what_cannot_be_read_back_is_refused(value, why):
    """The error is the caller's and names the path."""
    with pytest.raises(InvalidInput, match=why) as caught:
        canonical_bytes({"outer": [value]})
    assert caught.value.data["path"].startswith("$.outer[0]")
    assert caught.value.hint


def test_depth_is_bounded():
    """The deepest allowed value passes, one level more is refused."""
    assert normalise(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    with pytest.raises(InvalidInput, match="nests deeper than 60"):
        normalise(nested(MAX_DEPTH + 1))


def test_size_is_bounded():
    """A value of exactly the limit passes; quotes count."""
    assert len(canonical_bytes("x" * (MAX_BYTES - 2))) == MAX_BYTES
    with pytest.raises(InvalidInput, match="more than 1000000"):
        canonical_bytes("x" * (MAX_BYTES - 1))


def test_a_subclass_of_int_or_text_is_its_plain_value():
    """What reads back is plain JSON, whatever class went in."""

    class Number(int):
        pass

    class Word(str):
        __slots__ = ()

    assert json.loads(canonical_text({"n": Number(3), "w": Word("x")})) == {"n": 3, "w": "x"}


def test_a_mapping_is_typed_as_one():
    """`normalise_map` is `normalise` of a mapping."""
    assert normalise_map({"b": 1.0, "a": (NFD,)}) == {"b": 1, "a": [NFC]}
    assert normalise_map({"a": nested(MAX_DEPTH - 1)})["a"] == nested(MAX_DEPTH - 1)
    with pytest.raises(InvalidInput, match="nests deeper"):
        normalise_map({"a": nested(MAX_DEPTH)})
    for path, at in ((None, "$.a"), ("args", "args.a")):
        with pytest.raises(InvalidInput) as caught:
            normalise_map({"a": b""}, *([path] if path else []))
        assert caught.value.data == {"path": at}


@given(formed)
def test_normalising_twice_changes_nothing(value):
    """The normal form is a fixed point."""
    once = normalise(value)
    assert normalise(once) == once


@given(formed)
def test_canonical_text_reads_back_as_the_normal_form(value):
    """What is written is what was meant."""
    assert json.loads(canonical_text(value)) == normalise(value)


@given(st.dictionaries(st.text(max_size=5), formed, max_size=6).filter(has_form), st.randoms(use_true_random=False))
def test_key_order_never_matters(value, chance):
    """A mapping built in another order has the same bytes."""
    items = list(value.items())
    chance.shuffle(items)
    assert canonical_bytes(dict(items)) == canonical_bytes(value)


@given(formed)
def test_the_normal_form_is_detached(value):
    """Changing the given value afterwards changes nothing recorded."""
    before = canonical_text(value)
    normal = normalise({"held": value})
    if isinstance(value, list):
        value.append("later")
    if isinstance(value, dict):
        value["later"] = 1
    assert canonical_text(normal) == f'{{"held":{before}}}'


@pytest.mark.parametrize(("value", "expected"), GOLDEN, ids=str)
def test_digests_never_change(value, expected):
    """Slots, keys and approvals in old ledgers are digests of this form: a change needs a new form tag."""
    assert digest(value) == expected


def test_keyed_digests_depend_on_the_key_and_never_change():
    """A digest whose content must not be guessable needs the key."""
    assert keyed_digest({"amount": 5}, b"key-1") == KEYED
    assert keyed_digest({"amount": 5}, b"key-2") != KEYED
    assert keyed_digest({"amount": 5}, b"key-1").startswith(f"{FORM}:")
