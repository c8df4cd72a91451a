"""`docs/cli.md` is what the commands say of themselves."""

from pathlib import Path

from amends.surfaces.cli.exits import MEANING
from amends.surfaces.cli.reference import reference

ROOT = Path(__file__).parents[3]


def test_the_document_is_the_help():
    """Made anew by `python -m amends.surfaces.cli.reference > docs/cli.md`."""
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == reference()


def test_the_document_has_every_exit_code():
    """With its meaning."""
    text = reference()
    assert all(f"| {int(code)} | {meaning} |" in text for code, meaning in MEANING.items())
