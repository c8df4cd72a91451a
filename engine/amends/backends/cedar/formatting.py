"""One layout for all policies: file by file, because the formatter's cost grows faster than a file does."""

from __future__ import annotations

import re
from dataclasses import dataclass

from amends.backends.cedar import native, tree
from amends.backends.cedar.findings import PolicyFinding, error
from amends.backends.cedar.meaning import policy_digest
from amends.backends.cedar.text import guard

LINE_WIDTH = 80  # as `cedar format` does it by itself
_HEAD = re.compile(r"(?://[^\n]*\n)+\n")


@dataclass(frozen=True, slots=True)
class Formatted:
    """One file in the one layout. With findings, `text` is what was given."""

    text: str
    findings: tuple[PolicyFinding, ...] = ()


def formatted(text: str, file: str) -> Formatted:
    """`text` in the one layout, comments kept; what does not parse, or would mean something else, is left as it is.
    Formatting twice changes nothing.
    """
    if not text.strip():
        return Formatted(text)
    findings = guard(text, file)
    if findings:
        return Formatted(text, tuple(findings))
    before, findings = tree.parse(text, file)
    broken = [finding for finding in findings if finding.code in {"syntax", "template"}]
    if broken:
        return Formatted(text, tuple(broken))
    try:
        made = _with_head(text, native.format_policies(text, line_width=LINE_WIDTH).strip("\n") + "\n")
    except native.Malformed as problem:
        return Formatted(text, (_left(file, str(problem).splitlines()[0]),))
    after, _ = tree.parse(made, file)
    if [policy_digest(policy) for policy in before] != [policy_digest(policy) for policy in after]:
        return Formatted(text, (_left(file, "its meaning would change"),))
    return Formatted(made)


def _with_head(before: str, after: str) -> str:
    """The formatter glues a comment about the file to the first policy; here a blank line keeps them apart."""
    head = _HEAD.match(before.lstrip())
    if head is None:
        return after
    lines = head[0].rstrip("\n")
    return after.replace(lines + "\n", lines + "\n\n", 1) if after.startswith(lines + "\n") else after


def _left(file: str, why: str) -> PolicyFinding:
    return error("not_formatted", f"the file is left as it is: {why}", "report this with the file", file=file)
