"""The real tier holds itself to its rule: whatever skips has proven nothing, and fails."""

import shutil
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).with_name("conftest.py")
FILES = {
    "test_call.py": "def test_it():\n    pytest.skip('no shop here')",
    "test_mark.py": "@pytest.mark.skipif(True, reason='no flags here')\ndef test_it():\n    pass",
    "test_module.py": "pytest.skip('no chat here', allow_module_level=True)",
    "test_xfail.py": "@pytest.mark.xfail(strict=True)\ndef test_it():\n    assert not 'shop'",
    "test_pass.py": "def test_it():\n    pass",
}


def test_whatever_skips_fails_and_says_why(tmp_path):
    """In a test, by a mark, or a whole module; an expected failure is none of these."""
    shutil.copy(CONFTEST, tmp_path)
    for name, body in FILES.items():
        (tmp_path / name).write_text(f"import pytest\n\n\n{body}\n", encoding="utf-8")
    options = ["-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--continue-on-collection-errors"]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed, 1 xfailed, 2 errors" in done.stdout.splitlines()[-1]
    assert done.returncode == 1
    for reason in ("no shop here", "no flags here", "no chat here"):
        assert reason in done.stdout
