"""What the documents show is true: examples parse, sessions run, links lead somewhere."""

import ast
import doctest
import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "policies/**/*.md",
        "scenarios/**/*.md",
        "plugins/*/*.md",
        "tests/*.md",
    )
    for path in ROOT.glob(pattern)
)
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w-]+)[^\n]*\n(?P<body>.*?)^ *```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")


def run_session(text):
    """Run a `>>>` session and fail with doctest's own report."""
    test = doctest.DocTestParser().get_doctest(text, {}, "session", None, 0)
    report = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    assert not report, "".join(report)


CHECKS = {"python": ast.parse, "pycon": run_session, "toml": tomllib.loads, "json": json.loads}


def blocks():
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        for fence in FENCE.finditer(text):
            if fence["language"] in CHECKS:
                name = f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, fence.start()) + 1}"
                body = re.sub(rf"^{fence['indent']}", "", fence["body"], flags=re.MULTILINE)
                yield pytest.param(fence["language"], body, id=name)


@pytest.mark.parametrize(("language", "body"), list(blocks()))
def test_fenced_block_holds(language, body):
    """A `python`, `toml` or `json` block parses; a `pycon` block runs and answers what it says."""
    CHECKS[language](body)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    """Every relative link names a file or folder of the repository."""
    targets = [link["target"] for link in LINK.finditer(path.read_text(encoding="utf-8"))]
    local = [target.partition("#")[0] for target in targets if "://" not in target and not target.startswith("mailto:")]
    assert [target for target in local if target and not (path.parent / target).exists()] == []
