"""`docs/inject.md`: its example runs and prints what the page shows, and no fault, verdict or verb is left out."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from amends.surfaces.cli import app
from amends.testing.injection.faults import KINDS
from amends.testing.injection.workflow import VERBS, Workflow
from amends.testing.injection.world import WORST_FIRST
from amends.testing.loopback import LoopbackSystem

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/inject.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```toml file=(\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
SESSION = re.compile(r"^```console\n\$ amends (.*?)\n```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND, OUTPUT = SESSION.search(PAGE).groups()


def test_the_example_runs(tmp_path, monkeypatch, capsys):
    """On a test account of the partner, and nothing reaches the address of production."""
    monkeypatch.setenv("PARTNER_TOKEN", "production-token")
    monkeypatch.setenv("PARTNER_TEST_TOKEN", "partner-token")
    monkeypatch.delenv("AMENDS_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    with LoopbackSystem.start("partner") as production, LoopbackSystem.start("partner") as test:
        for name, text in FILES.items():
            at_home = text.replace("https://api.partner.example", production.url)
            Path(name).write_text(at_home.replace("https://test.partner.example", test.url))
        assert app.run(shlex.split(COMMAND)) == 6
        assert production.requests() == []
        assert test.count("reservation", "removed") == 2
    printed = capsys.readouterr().out
    assert doctest.OutputChecker().check_output(OUTPUT, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE), (
        printed
    )


@pytest.mark.parametrize("words", [KINDS, WORST_FIRST, VERBS, tuple(set(Workflow.model_fields) - {"recorded"})])
def test_every_word_is_on_the_page(words):
    """Faults, verdicts, verbs and keys of the file."""
    assert [word for word in words if f"`{word}" not in PAGE] == []
