"""`docs/events.md` says of every event and every move what the code says.

    python tests/docs/test_events.py

writes the made parts of the page anew.
"""

import re
from pathlib import Path
from typing import get_args

import pytest

from amends.core import events

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "events.md"
MADE = re.compile(r"<!-- made: (?P<what>[^>]+) -->\n(?P<text>.*?)<!-- /made -->", re.DOTALL)
BODIES = {body.model_fields["kind"].default: body for body in get_args(get_args(events.Body)[0])}


def sentence(body):
    return " ".join(body.__doc__.split())


def table(first, last):
    """The events from `first` to `last`, in the order of the code."""
    kinds = list(BODIES)
    rows = []
    for kind in kinds[kinds.index(first) : kinds.index(last) + 1]:
        fields = ", ".join(f"`{name}`" for name in BODIES[kind].model_fields if name != "kind")
        rows.append(f"| `{kind}` | {sentence(BODIES[kind])} | {fields or '–'} |\n")
    return "\n| kind | what happened | payload |\n|---|---|---|\n" + "".join(rows) + "\n"


def made(what):
    if what == "transitions":
        golden = (ROOT / "tests" / "golden" / "transitions.txt").read_text(encoding="utf-8")
        return f"\n```text\n{golden}```\n\n"
    return table(*what.split(" … "))


def rendered(page):
    return MADE.sub(lambda part: f"<!-- made: {part['what']} -->\n{made(part['what'])}<!-- /made -->", page)


def test_the_page_is_what_the_code_says():
    """Kinds, their docstrings and fields; and the transition tables, which tests/unit/core pins to the code."""
    page = PAGE.read_text(encoding="utf-8")
    assert page == rendered(page)


def test_the_page_has_every_kind_once():
    """No event is left out, and none is shown that does not exist."""
    shown = re.findall(r"^\| `([\w.]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown == list(BODIES)


def test_the_page_has_both_transition_tables():
    """Once."""
    assert [part["what"] for part in MADE.finditer(PAGE.read_text(encoding="utf-8"))].count("transitions") == 1


@pytest.mark.parametrize("kind", BODIES)
def test_an_event_says_what_happened(kind):
    """In a docstring that fits a line of the table."""
    assert sentence(BODIES[kind]).endswith(".")
    assert "|" not in sentence(BODIES[kind])


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
