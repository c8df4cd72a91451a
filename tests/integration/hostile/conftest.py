"""What hostile input is made of, and a count of what became of it: a fuzz test that reaches nothing must fail."""

from collections import Counter

import pytest
from hypothesis import strategies as st

from amends.core.errors import AmendsError

NASTY = (
    "\x00",
    "\ufeff",
    "\u2028",
    "💥",
    "\\ud800",
    "'",
    '"',
    '"""',
    "[",
    "]" * 3,
    "{" * 40,
    "(" * 700,
    "[" * 1500,
    "=",
    "#",
    ",",
    "1e999",
    "-1e308",
    "nan",
    "inf",
    "-inf",
    "0x" + "f" * 4000,
    "9" * 5000,
    "1979-05-27",
    "true",
    "null",
    "NaN",
    "[[",
    "..",
    "\n",
    "\n\n[adapters]\n",
    "\n[project]\n",
    "a.b.c.d = 1\n",
    "x" * 5000,
    '{"a":' * 1500,
    "a." * 1200 + "a = 1\n",
    "= {}",
    "= []",
    "= 1",
    "= -1",
    '= "x"',
    "when { true }",
    "&& true" * 600,
    "// ",
    ";",
    "@id",
    "<",
    "$ref",
    "!",
    "&a",
    "*a",
)


_LONGEST_WORDS = 100_000


@st.composite
def mutations(draw, base):
    """`base` with a few edits: pieces cut out, doubled, moved, and replaced by what readers stumble over."""
    text = base
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        length = draw(st.sampled_from((0, 0, 1, 3, 10, 40)))
        kind = draw(st.sampled_from(("nasty", "nasty", "cut", "double", "any")))
        piece = text[at : at + length]
        new = {"cut": "", "double": piece * 2}.get(kind)
        if new is None:
            new = draw(st.sampled_from(NASTY)) if kind == "nasty" else draw(st.text(max_size=8))
        text = text[:at] + new + text[at + length :]
    return text


def trees(leaves=None, keys=None):
    """Any tree of a data language: wrong types and names anywhere."""
    leaf = leaves or (st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6))
    name = keys or st.text(max_size=6)
    return st.recursive(
        leaf, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(name, inner, max_size=4), max_leaves=12
    )


@st.composite
def grafted(draw, base):
    """A sound tree in which one value is any other tree, or a key is lost, renamed or added."""
    tree, others = base, trees()
    path = []
    here = tree
    while isinstance(here, (dict, list)) and here and (not path or draw(st.booleans())):
        key = draw(st.sampled_from(sorted(here) if isinstance(here, dict) else range(len(here))))
        path.append(key)
        here = here[key]
    return _with(tree, path, draw(others), draw(st.sampled_from(("value", "lost", "added"))))


def _with(tree, path, new, how):
    if not path:
        return new
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    if len(path) > 1:
        copy[path[0]] = _with(copy[path[0]], path[1:], new, how)
    elif how == "lost":
        del copy[path[0]]
    elif how == "added" and isinstance(copy, dict):
        copy[f"{path[0]}x"] = new
    else:
        copy[path[0]] = new
    return copy


class Tally:
    """How often a reader took what it was given and how often it said no, in words for people."""

    def __init__(self):
        self.counts = Counter()

    def read(self, reader, *given):
        """What the reader answers, or None if it refused with an error of ours. Anything else passes: it is a fault."""
        try:
            found = reader(*given)
        except AmendsError as error:
            if not error.message or len(str(error)) > _LONGEST_WORDS:
                raise AssertionError(f"an error of {len(str(error))} characters tells nobody anything") from error
            self.counts["refused"] += 1
            return None
        self.counts["accepted"] += 1
        return found


@pytest.fixture
def tally():
    """At the end of the test both must have happened, or the strategy has not reached the code."""
    made = Tally()
    yield made
    assert made.counts["accepted"] > 0, made.counts
    assert made.counts["refused"] > 0, made.counts


@pytest.fixture
def mutated():
    """`mutations`, for tests of this folder."""
    return mutations


@pytest.fixture
def graft():
    """`grafted`, likewise."""
    return grafted
