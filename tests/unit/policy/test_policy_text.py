"""Guards before parsing: limits that keep the parser from ending the process, and lines for messages."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.backends.cedar.text import MAX_IFS, MAX_LINKS, MAX_NESTING, guard, normalise, statements

HEAD = "permit (principal, action, resource) when { "


def test_statements_know_their_lines():
    """Comments, strings and line breaks do not move the line a statement begins on."""
    text = (
        '// a; b\n@id("x;y") // c\npermit (principal, action,\nresource);\n\n\nforbid (principal, action, resource);\n'
    )
    assert [statement.line for statement in statements(text)] == [2, 7]


def test_text_after_the_last_statement_is_one():
    """An unfinished statement is not lost: the parser's refusal needs a line."""
    assert [statement.line for statement in statements("permit (principal,\n action")] == [1]
    assert list(statements("  // only a comment\n\n")) == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("(" * (MAX_NESTING + 1) + "true" + ")" * (MAX_NESTING + 1), "too_deep"),
        ("[" * (MAX_NESTING + 1) + "]" * (MAX_NESTING + 1) + " == []", "too_deep"),
        ("if true then true else " * (MAX_IFS + 1) + "true", "too_many_ifs"),
        (" && ".join(["true"] * (MAX_LINKS + 2)), "too_long"),
        ("context" + ".a" * (MAX_LINKS + 1), "too_long"),
        ("context" + '["a"]' * (MAX_LINKS + 1), "too_long"),
        ("context has a" + ".a" * (MAX_LINKS + 1), "too_long"),
        ("1 == " + " + ".join(["1"] * (MAX_LINKS + 2)), "too_long"),
        ("!" * (MAX_LINKS + 1) + "true", "too_long"),
    ],
)
def test_what_could_end_the_process_is_refused(body, code):
    """Each shape that overflows the parser's stack is counted before it is parsed."""
    assert code in {finding.code for finding in guard(HEAD + body + " };", "f.cedar")}


def test_brackets_in_strings_and_comments_do_not_count():
    """Only code nests."""
    assert guard(HEAD + '"' + "(" * 100 + '" == "" }; // ' + "(" * 100, "f.cedar") == []


def test_nested_sets_in_a_schema_count():
    """A schema nests by angle brackets, too."""
    text = "namespace A { type T = " + "Set<" * 80 + "Long" + ">" * 80 + "; }"
    assert [finding.code for finding in guard(text, "s.cedarschema", schema=True)] == ["too_deep"]
    assert guard(HEAD + " || ".join(["1 < 2"] * 80) + " };", "f.cedar") == []


def test_worst_permitted_text_does_not_end_the_process():
    """At the very limits of the guard the parser, on our thread, answers instead of crashing."""
    program = """
from amends.backends.cedar import tree
from amends.backends.cedar.text import MAX_IFS, MAX_LINKS, MAX_NESTING
from amends.backends.cedar.worker import Worker
head = 'permit (principal, action, resource) when { '
deep = '(' * (MAX_NESTING - 1)
bodies = [
    deep + 'true' + ')' * len(deep),
    ' && '.join(['true'] * MAX_LINKS),
    'context' + '.a' * (MAX_LINKS - 1),
    'if true then true else ' * MAX_IFS + 'true',
    deep + 'context' + '.a' * (MAX_LINKS - 1) + ')' * len(deep),
]
for body in bodies:
    policies, findings = Worker().run(lambda: tree.parse(head + body + ' };', 'f'))
    print(len(policies), [f.code for f in findings])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 5), done.stderr


def test_line_ends_and_byte_order_mark_do_not_matter():
    """Sources are compared in LF form."""
    assert normalise(b"\xef\xbb\xbfa\r\nb\rc\n", "f") == "a\nb\nc\n"


@given(st.text())
def test_any_text_can_be_scanned(text):
    """The scanner ends on every text, and statements come in order."""
    lines = [statement.line for statement in statements(text)]
    assert lines == sorted(lines)
    assert all(1 <= line <= text.count("\n") + 1 for line in lines)
