"""The scaffold's example, whole or with one edit, and the matrix run on it in a process of its own."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from amends.surfaces.cli import app
from amends.testing.distributions import MadeDistributions


@dataclass
class Verdict:
    """What a run of the matrix said: the tests that held, and the words of those that did not."""

    held: set[str]
    failed: dict[str, str]
    said: str


class Example:
    """The adapter that `amends plugins new demo` makes."""

    def __init__(self, folder):
        self.folder = folder
        assert app.run(["plugins", "new", "demo", "--folder", str(folder)]) == 0
        self._site = MadeDistributions(folder / "site")
        self._site.add("amends-demo", entry_point="demo", target="amends_demo.plugin")

    def edit(self, module, old, new):
        """One edit of the adapter's source."""
        path = self.folder / "src" / "amends_demo" / module
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"the example no longer reads `{old}`"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def matrix(self, *tests):
        """Run these tests of the matrix; names without the capability."""
        report = self.folder / "report.xml"
        names = [f"tests/test_conformance.py::TestNotes::{self._id(test)}" for test in tests]
        paths = [self._site.folder, self.folder / "src", *filter(None, [os.environ.get("PYTHONPATH")])]
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *names],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
            capture_output=True,
            text=True,
            check=False,
        )
        return self._verdict(report, ended.stdout + ended.stderr)

    @staticmethod
    def _id(test):
        name, bracket, parameter = test.partition("[")
        return f"{name}[demo.create_note-{parameter}" if bracket else f"{name}[demo.create_note]"

    @staticmethod
    def _verdict(report, said):
        assert report.exists(), said
        held, failed = set(), {}
        for case in ET.parse(report).iter("testcase"):
            name = case.get("name").replace("demo.create_note-", "").replace("[demo.create_note]", "")
            words = [f"{wrong.get('message')}\n{wrong.text}" for wrong in case if wrong.tag in {"failure", "error"}]
            if words:
                failed[name] = failed.get(name, "") + "\n".join(words)
            else:
                held.add(name)
        return Verdict(held - set(failed), failed, said)


@pytest.fixture
def example(tmp_path: Path) -> Example:
    """The example in a folder of its own."""
    return Example(tmp_path / "amends-demo")
