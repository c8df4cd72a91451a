"""docs/limits.md says the numbers that the code has."""

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "limits.md"
ROWS = re.findall(r"^\| .+? \| ([\d,]+) \| .+ \| `([\w.]+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(("said", "where"), ROWS, ids=[where for _, where in ROWS])
def test_the_number_is_the_codes(said, where):
    """One row, one constant."""
    module, _, name = where.rpartition(".")
    assert getattr(import_module(module), name) == int(said.replace(",", ""))


def test_every_row_is_held():
    """No row of the table escapes."""
    table = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert len(ROWS) == len(table) - 1 > 0
