"""Text of others, read as data: a value, or a `ValueError` in words; nothing else, whatever stands in it."""

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.core.reading import MAX_DEPTH, json_of, toml_of

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)


@given(json_values)
def test_sound_json_reads_as_ever(value):
    """As the plain reader reads it, from text and from bytes."""
    text = json.dumps(value)
    assert json_of(text) == json_of(text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "nests"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "nests"),
        ('{"a": 1, "a": 1}', "`a` stands twice"),
        ('{"b": {"a": 1, "a": 2}}', "`a` stands twice"),
        ("NaN", "`NaN`"),
        ("[-Infinity]", "`-Infinity`"),
        ("9" * 6_000, "digits"),
        ("{", "Expecting"),
        ("", "Expecting"),
    ],
)
def test_what_two_readers_would_read_differently_is_no_json(text, said):
    """Also what a plain reader takes, or dies of."""
    with pytest.raises(ValueError, match=said):
        json_of(text)


def test_as_deep_as_may_be_is_read():
    """The limit itself is allowed, in both languages."""
    assert json_of("[" * MAX_DEPTH + "]" * MAX_DEPTH) == json.loads("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    nested = "a = " + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    assert toml_of(nested) == tomllib.loads(nested)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = " + "[" * 5_000, "nests"),
        ("a = " + "[" * MAX_DEPTH + "]" * MAX_DEPTH, "nests"),
        ("a = 9223372036854775808", "64 bits"),
        ("a = [{b = -9223372036854775809}]", "64 bits"),
        ("a = 0x" + "f" * 4_000, "64 bits"),
        ("a = ", "Invalid value"),
    ],
)
def test_toml_that_no_reader_could_use_is_none(text, said):
    """TOML's integers have 64 bits, whatever Python makes of them."""
    with pytest.raises(ValueError, match=said):
        toml_of(text)


def test_sound_toml_reads_as_ever():
    """The largest numbers, dates and tables."""
    text = "a = 9223372036854775807\nb = -9223372036854775808\nc = 1979-05-27\n[d.e]\nf = [1, 'x', true]\n"
    assert toml_of(text) == tomllib.loads(text)
