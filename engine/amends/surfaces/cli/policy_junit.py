"""Policy test results as JUnit XML, which every CI reads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

if TYPE_CHECKING:
    from amends.backends.cedar.testing import PolicyTestResult


def junit(results: Sequence[PolicyTestResult]) -> str:
    """One `testsuite` a file, one `testcase` a test."""
    failed = sum(not result.passed for result in results)
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f'<testsuites tests="{len(results)}" failures="{failed}">']
    for file, group in groupby(results, key=lambda result: result.file):
        lines += _suite(file, list(group))
    return "\n".join([*lines, "</testsuites>", ""])


def _suite(file: str, results: Sequence[PolicyTestResult]) -> list[str]:
    failed = sum(not result.passed for result in results)
    lines = [f'  <testsuite name={_quoted(file)} tests="{len(results)}" failures="{failed}">']
    for result in results:
        head = f"    <testcase classname={_quoted(file)} name={_quoted(result.name)} file={_quoted(file)}"
        if result.passed:
            lines.append(f"{head}/>")
        else:
            failure = f"<failure message={_quoted(result.problem)}>{escape(_legal(result.problem))}</failure>"
            lines.append(f"{head}>{failure}</testcase>")
    return [*lines, "  </testsuite>"]


def _quoted(text: str) -> str:
    return quoteattr(_legal(text))


def _legal(text: str) -> str:
    """XML knows no control characters."""
    return "".join(one if one >= " " or one in "\t\n" else "\N{REPLACEMENT CHARACTER}" for one in text)
