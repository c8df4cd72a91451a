"""What authors of agents and adapters write is checked as they would check it: mypy, strict, with this repository's
settings. `make lint` runs mypy and pyright over the same files.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PINS = sorted(HERE.glob("as_*.py"))
SHOWN = dict(
    re.findall(
        r"^```python file=(\S+)\n(.*?)^```",
        (ROOT / "docs/adapters.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
)


def mypy(*files):
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", *map(str, files)]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.timeout(300)  # without a cache, mypy reads all of the engine
def test_the_public_interfaces_are_typed_as_pinned():
    """Right use passes, and each marked mistake is one: a `type: ignore` that nothing needs is an error."""
    status, said = mypy(*PINS)
    assert status == 0, said


@pytest.mark.timeout(300)
def test_the_adapter_of_the_documents_is_typed(tmp_path):
    """Strictly, so that authors can start from it."""
    for name, text in SHOWN.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert SHOWN
    status, said = mypy(*(tmp_path / name for name in SHOWN))
    assert status == 0, said


@pytest.mark.timeout(300)
def test_a_mistake_is_noticed(tmp_path):
    """The check itself can fail."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from amends import Engine\n\nEngine.open(1)\n", encoding="utf-8")
    status, said = mypy(wrong)
    assert status == 1
    assert "arg-type" in said
