"""The examples of the pages really run: real journal, Cedar, DuckDB, adapters, and the loopback partner over HTTP.

In a page, the words after a fence's language say what happens with it:

    toml file=amends.toml     is written into the page's project before anything runs; so is any other named file
    python run                runs, in the order of the page, in one namespace (`partner` is the loopback system)
    text output               is what the `run` block above it prints (`...` stands for anything)

A project with a `pyproject.toml` is installed first: its entry points are found like those of any distribution.
"""

import contextlib
import doctest
import io
import re
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from amends.testing.loopback import LoopbackSystem

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(?P<language>\w+) (?P<words>[^\n]+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
PROJECT_OF = {"README.md": "docs/python.md"}  # a page without files of its own borrows a project
PARTNER = "https://api.partner.example"
LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass
class Example:
    """A block that runs, and what it prints."""

    line: int
    code: str
    output: str = ""


@dataclass
class Page:
    """A page's files and examples."""

    name: str
    files: dict[str, str] = field(default_factory=dict)
    examples: list[Example] = field(default_factory=list)


def read(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    page = Page(name)
    for fence in FENCE.finditer(text):
        words, body = fence["words"], fence["body"]
        if words.startswith("file="):
            page.files[words.removeprefix("file=")] = body
        elif words == "run":
            page.examples.append(Example(text.count("\n", 0, fence.start("body")), body))
        elif words == "output":
            page.examples[-1].output = body
        else:
            raise AssertionError(f"{name}: `{words}` means nothing after a fence's language")
    return page


PAGES = [read(path.relative_to(ROOT).as_posix()) for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]]
RUNNABLE = [page for page in PAGES if page.examples]


@pytest.fixture
def partner(monkeypatch):
    """The partner of every page."""
    monkeypatch.setenv("PARTNER_TOKEN", "partner-token")
    with LoopbackSystem.start("partner") as system:
        yield system


@pytest.fixture
def project(request, partner, tmp_path, monkeypatch):
    """The page's project, installed if it can be, as the current folder."""
    name = PROJECT_OF.get(request.param.name, request.param.name)
    files = next(page for page in PAGES if page.name == name).files
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text.replace(PARTNER, partner.url), encoding="utf-8")
    if "pyproject.toml" in files:
        install(tmp_path, tomllib.loads(files["pyproject.toml"])["project"])
        monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield request.param
    for module in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[module], "__file__", "")):
            del sys.modules[module]


def install(folder, about):
    """What `pip install --editable` leaves behind, as far as entry points need it."""
    info = folder / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    points = "".join(f"{name} = {target}\n" for name, target in about["entry-points"]["amends"].items())
    (info / "entry_points.txt").write_text(f"[amends]\n{points}", encoding="utf-8")


@pytest.mark.parametrize("project", RUNNABLE, indirect=True, ids=lambda page: page.name)
def test_examples_run(project, partner):
    """Each block in turn, and it prints what the page says."""
    names = {"partner": partner}
    with contextlib.ExitStack() as ends:
        for example in project.examples:
            code = compile("\n" * example.line + example.code, str(ROOT / project.name), "exec")
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(code, names)
            engine = names.get("engine")
            if engine is not None:
                ends.callback(engine.close)
            where = f"{project.name}:{example.line}"
            right = doctest.OutputChecker().check_output(example.output, printed.getvalue(), LOOSE)
            assert right, f"{where} printed\n{printed.getvalue()}"


def test_pages_have_examples():
    """The pages that promise runnable examples have them."""
    assert {page.name for page in RUNNABLE} >= {"README.md", "docs/python.md", "docs/adapters.md"}


def test_the_readme_shows_an_example_of_the_python_page():
    """Word for word, so that the two never drift apart."""
    readme, python = (next(page for page in PAGES if page.name == name) for name in ("README.md", "docs/python.md"))
    shown = [example.code for example in python.examples]
    assert readme.examples
    assert [example.code for example in readme.examples if example.code not in shown] == []
