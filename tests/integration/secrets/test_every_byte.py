"""Rule 10 over everything that Amends writes or says, in a world where every system echoes its credentials."""

import base64
import html
import json
import shutil
from urllib.parse import quote

import duckdb
import pytest

from amends import Engine

QUESTIONS = [
    ("runs", "list", "--json"),
    ("recover", "--json"),
    ("inbox", "list", "--json"),
    ("outbox", "list", "--json"),
    ("policy", "check"),
    ("policy", "list"),
    ("policy", "show"),
    ("policy", "history"),
    ("policy", "test"),
    ("policy", "reload"),
    ("sql", "SELECT * FROM events", "--json"),
    ("sql", "SELECT * FROM actions", "--json"),
    ("sql", "SELECT * FROM evidence"),
    ("sql", "SELECT nothing FROM nowhere"),
    ("plugins", "list"),
    ("plugins", "check", "--json"),
    ("plugins", "check"),
    ("ledger", "info"),
    ("ledger", "verify"),
    ("ledger", "rebuild"),
    ("ledger", "export"),
    ("audit", "--json"),
    ("inventory",),
    ("doctor", "--json"),
    ("doctor",),
    ("doctor", "--as-agent"),
    ("pause", "set", "all", "--by", "maya", "--reason"),
    ("pause", "list"),
    ("pause", "lift", "all", "--by", "maya"),
]


def test_the_systems_were_sent_their_secrets(rich, secrets):
    """Present where it is needed: each system took a call that only its credential admits, and each echoed it."""
    assert rich.systems["partner"].count("reservation") > 0
    assert "git.create_branch:succeeded" in rich.tried
    assert rich.git.receive_packs > 0
    for name in ("partner.reserve_inventory", "jira.comment", "flags.set"):
        assert f"{name}:succeeded" in rich.tried
    assert rich.systems["slack"].requests("POST", "/api/chat.postMessage")
    for name in ("partner", "jira", "unleash"):
        assert rich.systems[name].fired() >= 2, name
    assert "migrations.upgrade:denied" in rich.tried, "its database was read by the DSN before policy said no"
    assert any(secrets["HOOK"].endswith(path) for path, _ in rich.hook.asked)
    assert rich.errors, "no call with a secret was refused"
    assert not any("was opened" in error for error in rich.errors)


def test_nothing_of_a_secret_is_written_printed_or_logged(rich, search, tmp_path):
    """Journal, ledger, archive, backup, exports, owner files, what every command prints, log records, tracebacks,
    what notifiers were given, and what was left in the temporary folder.
    """
    for question in QUESTIONS:
        rich.ask(*question, *([f"since {rich.environment['CARD']} leaked"] if question[-1] == "--reason" else []))
    _, listed = rich.ask("runs", "list", "--json")
    for run in json.loads(listed)["runs"]:
        rich.ask("runs", "show", run["run_id"])
        rich.ask("runs", "report", run["run_id"])
    decided = []
    _, items = rich.ask("inbox", "list", "--json")
    for item in json.loads(items)["approvals"]:
        rich.ask("inbox", "show", item["approval_id"])
        told = ("--by", "maya", "--comment", f"it said {rich.environment['JIRA']}")
        decided.append(rich.ask("inbox", "reject", item["approval_id"], *told))
    assert any(code == 0 for code, _ in decided), decided
    rich.ask("ledger", "backup", str(rich.folder / "backup"))
    _, exported = rich.ask("ledger", "export")
    (rich.folder / "exported.jsonl").write_text(exported)
    told = rich.crash("run.call('slack.post', {'channel': 'C0BILLING', 'text': os.environ['SLACK']})")
    assert "InvalidInput" in told
    told = rich.crash("run.fail('no', wait_seconds=1)\nrun.call('slack.post', {'channel': 'C0BILLING', 'text': 'x'})")
    assert "Traceback" in told
    shutil.copytree(rich.folder.parent / "temporary", rich.folder / "left-in-tmp", dirs_exist_ok=True)
    assert list((rich.folder / ".amends").rglob("*.parquet")), "nothing was sealed"
    assert (
        search(
            rich.folder,
            [*rich.printed, ("hook", repr([body for _, body in rich.hook.asked])), *enumerated(rich.errors)],
        )
        == []
    )
    assert any("«redacted»" in text for _, text in rich.printed), "nothing was ever masked"


def enumerated(errors):
    return [(f"error {number}", error) for number, error in enumerate(errors)]


FORMS = {
    "as it is": str,
    "in an address": lambda s: quote(s, safe=""),
    "in JSON": lambda s: json.dumps({"error": s}),
    "in HTML": html.escape,
    "in hexadecimal": lambda s: s.encode().hex(),
    "in Basic": lambda s: base64.b64encode(f"user:{s}".encode()).decode(),
    "a part of it": lambda s: s[2:-2],
}


@pytest.mark.parametrize("how", FORMS)
def test_the_search_finds_what_a_naive_recorder_wrote(secrets, search, tmp_path, how):
    """The control: an error text kept as it came is found in a file, a DuckDB file and a Parquet file alike."""
    for name, secret in secrets.items():
        if name in {"HOOK", "STAGING"} and how == "a part of it":
            continue
        folder = tmp_path / name
        folder.mkdir()
        text = f"login failed: {FORMS[how](secret)}"
        (folder / "journal").write_text(text)
        with duckdb.connect(str(folder / "ledger.duckdb")) as connection:
            connection.execute("CREATE TABLE events AS SELECT ? AS payload FROM range(3000)", [text])
            connection.execute(f"COPY events TO '{folder}/runs.parquet'")
        found = {line.partition(":")[0].partition(" as ")[0] for line in search(folder)}
        assert found == {"journal", "ledger.duckdb", "runs.parquet"}, (name, found)


def test_an_engine_whose_policies_hold_a_secret_does_not_open(tmp_path, rich):
    """The ledger keeps the sources of policies: the file is named, the secret is not, and nothing is recorded."""
    bundle = rich.folder.parent / "bundle"
    bundle.mkdir()
    (bundle / "bundle.toml").write_text('label = "1.0.0"\n')
    (bundle / "site.cedar").write_text(
        f'// {rich.environment["CARD"]}\n@id("site-1")\n@reason("none")\n'
        "forbid (principal, action, resource) when { false };\n"
    )
    settings = rich.folder / "amends.toml"
    text = settings.read_text()
    settings.write_text(f'{text}\n[policies]\nbundle = "{bundle}"\n')
    try:
        with pytest.raises(Exception, match=r"site\.cedar") as refused:
            Engine.open(rich.folder, mirror=False)
    finally:
        settings.write_text(text)
    assert rich.environment["CARD"] not in str(refused.value)
