"""What an author of an adapter is promised: `amends plugins new`, install it, and the fault matrix passes; and it fails
when the undo is emptied.
"""

import json
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = Path(sys.executable).parent
UNDO = "        self._service.delete(call, call.reference)\n"
TAKEN_BACK = "tests/test_conformance.py::TestNotes::test_what_was_done_is_taken_back_and_looked_at"

pytestmark = pytest.mark.timeout(300)


class Author:
    """A person with an environment of their own, in which amends and pytest are installed, and a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.python = folder / "venv" / "bin" / "python"
        venv.create(folder / "venv", symlinks=True)
        [here] = (folder / "venv" / "lib").glob("python*/site-packages")
        everything = [path for path in sys.path if path.endswith("site-packages")]
        lines = "".join(f"import site; site.addsitedir({path!r})\n" for path in everything)
        (here / "what_is_installed_here.pth").write_text(lines, encoding="utf-8")

    def run(self, *command, folder=None):
        """A command of the environment's Python: exit code and what it said."""
        ended = subprocess.run(
            [self.python, *command],
            cwd=folder or self.folder,
            env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INDEX": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        return ended.returncode, ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def author(tmp_path_factory):
    return Author(tmp_path_factory.mktemp("author"))


@pytest.fixture(scope="module")
def adapter(author):
    """The folder of `amends-demo`, made and installed."""
    code, said = author.run("-m", "amends", "plugins", "new", "demo", "--json")
    assert code == 0, said
    made = json.loads(said)
    folder = Path(made["folder"])
    assert folder == author.folder / "amends-demo"
    assert all((folder / name).is_file() for name in made["written"])
    install = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--editable", folder)
    code, said = author.run(*install)
    assert code == 0, said
    return folder


def test_the_new_adapter_passes_the_whole_matrix(author, adapter):
    """Its tests are wired to the kit from the first minute, and what they do not try they say."""
    code, said = author.run("-m", "pytest", "-q", "-p", "no:cacheprovider", folder=adapter)
    assert code == 0, said
    assert "conformance matrix" in said
    [(held, silent)] = re.findall(r"demo\.create_note: (\d+) held, 0 failed, (\d+) say nothing about it", said)
    assert int(held) > 40
    assert int(silent) <= 5


def test_the_matrix_fails_when_the_undo_is_emptied(author, adapter):
    """An undo that does nothing answers OK; the look after it sees that the effect is still there."""
    module = adapter / "src" / "amends_demo" / "notes.py"
    whole = module.read_text(encoding="utf-8")
    assert whole.count(UNDO) == 1
    module.write_text(whole.replace(UNDO, ""), encoding="utf-8")
    try:
        code, said = author.run("-m", "pytest", "-q", "-p", "no:cacheprovider", TAKEN_BACK, folder=adapter)
    finally:
        module.write_text(whole, encoding="utf-8")
    assert code == 1, said
    assert "demo.create_note: 0 held, 1 failed" in said
    assert "compensated" in said


def test_the_new_adapter_is_loaded_by_an_engine(author, adapter, tmp_path):
    """`plugins check` and the policy tests of a project that uses it are content."""
    (tmp_path / "amends.toml").write_text(
        '[project]\ntenant = "acme"\nenvironment = "staging"\nowner = "maya"\n'
        '[adapters.demo]\nbase_url = "http://127.0.0.1:9"\n',
        encoding="utf-8",
    )
    code, said = author.run("-m", "amends", "plugins", "check", "--json", folder=tmp_path)
    assert code == 0, said
    assert json.loads(said)["adapters"][0]["capabilities"] == ["demo.create_note"]
    code, said = author.run("-m", "amends", "policy", "test", folder=tmp_path)
    assert code == 0, said


@pytest.mark.parametrize(
    "command",
    [("ruff", "check"), ("ruff", "format", "--check"), ("mypy", "--no-incremental", "src", "tests")],
    ids=" ".join,
)
def test_the_new_adapter_is_clean(author, adapter, command):
    """Style and strict types hold for what was filled in, by the adapter's own settings."""
    ended = subprocess.run(
        [TOOLS / command[0], *command[1:]],
        cwd=adapter,
        env={**os.environ, "RUFF_NO_CACHE": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
