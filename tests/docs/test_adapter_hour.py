"""docs/adapter-in-an-hour.md is walked through, in an environment of its own: each command runs, each block goes where
the page says, and what the page shows is what comes out.

A comment above a fence says what happens with it: `run`, `said` (a part of what was printed), `file:` and `append:` (a
file's text), `in: FILE before: TEXT` and `in: FILE after: TEXT` (an insertion), `breaks: FILE TEXT` (the line with TEXT
goes for as long as the command runs, which has to fail).
"""

import os
import re
import shlex
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "adapter-in-an-hour.md"
STEP = re.compile(r"^<!-- (?P<what>[^>]+?) -->\n```\w+\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```\w+\n", re.MULTILINE)
SHELL = {
    "PIP_NO_INDEX": "1",
    "PIP_NO_DEPS": "1",
    "PIP_NO_BUILD_ISOLATION": "0",  # pip reads this one the other way round
    "PIP_QUIET": "1",
    "PYTEST_ADDOPTS": "-p no:cacheprovider",
    "NO_COLOR": "1",
    "DEMO_TOKEN": "the-token-of-the-page",
}


class Newcomer:
    """Whoever follows the page: a shell, an environment, and a memory of what was printed."""

    def __init__(self, folder):
        self.folder = folder
        self.said = ""
        venv.create(folder / "venv", symlinks=True)
        [site] = (folder / "venv" / "lib").glob("python*/site-packages")
        everything = [path for path in sys.path if path.endswith("site-packages")]
        lines = "".join(f"import site; site.addsitedir({path!r})\n" for path in everything)
        (site / "what_is_installed_here.pth").write_text(lines, encoding="utf-8")
        self._python = folder / "venv" / "bin" / "python"

    def run(self, body, code=0):
        """Every line of a shell block."""
        for line in body.splitlines():
            words = shlex.split(line)
            if words[0] == "cd":
                self.folder /= words[1]
                continue
            command = ["-m", "amends", *words[1:]] if words[0] == "amends" else words[1:]
            ended = subprocess.run(
                [self._python, *command],
                cwd=self.folder,
                env={**os.environ, **SHELL},
                capture_output=True,
                text=True,
                check=False,
            )
            self.said = ended.stdout + ended.stderr
            assert ended.returncode == code, f"{line}\n{self.said}"

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")

    def read(self, name):
        return (self.folder / name).read_text(encoding="utf-8")

    def insert(self, name, where, text, body):
        """Before the text, or on the line after it."""
        old = self.read(name)
        assert old.count(text) == 1, f"{name} has {old.count(text)} times `{text}`"
        place = old.index(text) if where == "before" else old.index("\n", old.index(text)) + 1
        self.write(name, old[:place] + body + old[place:])

    def breaks(self, name, text, body):
        """Without the line the command fails."""
        whole = self.read(name)
        kept = [line for line in whole.splitlines(keepends=True) if text not in line]
        assert len(kept) == len(whole.splitlines()) - 1
        self.write(name, "".join(kept))
        self.run(body, code=1)
        self.write(name, whole)

    def follow(self, what, body):
        """One step of the page."""
        kind, _, rest = what.partition(" ")
        if what == "run":
            self.run(body)
        elif what == "said":
            assert body in self.said
        elif kind == "file:":
            self.write(rest, body)
        elif kind == "append:":
            self.write(rest, self.read(rest) + body)
        elif kind == "breaks:":
            self.breaks(*rest.split(" ", 1), body)
        elif kind == "in:":
            name, where, text = re.fullmatch(r"(\S+) (before|after): (.*)", rest, re.DOTALL).groups()
            self.insert(name, where, text, body)
        else:
            raise AssertionError(f"`{what}` means nothing above a fence")


def test_every_block_of_the_page_is_a_step():
    """None is only for show."""
    page = PAGE.read_text(encoding="utf-8")
    assert len(STEP.findall(page)) == len(FENCE.findall(page)) > 10


@pytest.mark.timeout(400)
def test_the_page_can_be_followed(tmp_path):
    """From nothing to a second capability with a green matrix, in a project that uses it."""
    newcomer = Newcomer(tmp_path)
    steps = list(STEP.finditer(PAGE.read_text(encoding="utf-8")))
    for step in steps:
        newcomer.follow(step["what"], step["body"])
    assert "demo.set_title" in newcomer.said
    assert "demo.create_note" in newcomer.said
