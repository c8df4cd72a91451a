"""The project of a kill loop: the http and Slack adapters on loopback systems, with contracts of short times."""

from __future__ import annotations

import shutil
from importlib.resources import as_file, files
from pathlib import Path

PARTNER_TOKEN = "partner-token"  # noqa: S105 - the loopback partner's well-known credential
SLACK_TOKEN = "xoxb-loopback"  # noqa: S105 - the loopback Slack's
ENVIRONMENT = {"CRASH_PARTNER_TOKEN": PARTNER_TOKEN, "CRASH_SLACK_TOKEN": SLACK_TOKEN}

_CONFIG = """\
[project]
tenant = "acme"
environment = "staging"
owner = "maya"

[engine]
lease_seconds = {lease_seconds}
skew_seconds = 0.2

[people.maya]
roles = ["finance"]
tier = 3

[adapters.partner]
plugin = "http"
base_url = "{partner}"
contracts = "contracts"
token = "env:CRASH_PARTNER_TOKEN"
account = "acct_main"

[adapters.slack]
base_url = "{slack}/api"
token = "env:CRASH_SLACK_TOKEN"
timeout_seconds = 1.5
probe_deadline_seconds = 20
absent_final_after_seconds = 0.6
people = {{ maya = "U0MAYA" }}
"""


def write_project(folder: Path, *, partner: str, slack: str, lease_seconds: float = 30.0) -> Path:
    """Write `amends.toml` and the contracts into `folder`; answers the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = _CONFIG.format(partner=partner, slack=slack, lease_seconds=lease_seconds)
    (folder / "amends.toml").write_text(text, encoding="utf-8")
    with as_file(files("amends.testing.crash") / "contracts") as contracts:
        shutil.copytree(contracts, folder / "contracts", dirs_exist_ok=True)
    return folder
