"""The shop contracts on a real Vendure: the very tests that hold on the loopback shop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = "plugins/http/tests/test_shop.py"


@pytest.mark.timeout(300)
def test_the_shop_contracts_hold_on_the_real_shop(vendure):
    """All but those that tell the shop to misbehave."""
    line = {
        "url": vendure.admin_url,
        "token": vendure.token,
        "variant": vendure.variant,
        "customer": vendure.customer,
        "shipping": vendure.shipping,
    }
    run = subprocess.run(
        [sys.executable, "-m", "pytest", TESTS, "-q", "-k", "not told", "-p", "no:cacheprovider"],
        cwd=ROOT,
        env={**os.environ, "AMENDS_VENDURE": json.dumps(line)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-3000:]
    assert " passed" in run.stdout
    assert "skipped" not in run.stdout
