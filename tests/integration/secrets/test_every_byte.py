"""Rule 10 over everything that Amends writes or says, in a world where every system echoes its credentials."""

import base64
import html
import json
import re
import shutil
from urllib.parse import quote

import click
import duckdb
import pytest

from amends import Engine
from amends._resources import policies_path
from amends.core.events import words
from amends.core.redaction import SHORTEST_SECRET, unfit
from amends.surfaces.cli import app
from amends.testing.conformance.project import write_project
from amends.testing.loopback import LoopbackSystem

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
    ("policy", "replay", "active", "--fail-on", "none"),
    ("policy", "replay", "active", "--json"),
    ("policy", "diff", "active"),
    ("policy", "diff", "active", "--json"),
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
    ("outbox", "list"),
    ("quarantine", "list"),
    ("journal", "migrate"),
    ("ledger", "seal"),
    ("pause", "set", "all", "--by", "maya", "--reason"),
    ("pause", "list"),
    ("pause", "lift", "all", "--by", "maya"),
]

# Asked below about what the world has come to, or with nothing of a ledger to show.
ASKED = {
    *("runs show", "runs report", "inbox show", "inbox reject", "policy show", "policy eval", "policy explain"),
    *("ledger backup", "ledger restore"),
}
NOTHING_TO_SHOW = {
    "init": "writes a new project",
    "policy fmt": "reads and writes files that it is given",
    "plugins new": "writes a new plugin",
    "contracts import": "reads a description that it is given",
    "drill": "prints results of calls, as `runs show` does",
    "worker": "recovers, as `recover` does",
    "inject": "plays in a sandbox with made-up secrets",
    "scenario list": "lists what is shipped",
    "scenario run": "plays in a sandbox with made-up secrets",
    "inbox acknowledge": "a decision of a person, as `inbox reject` is",
    "inbox approve": "a decision of a person, as `inbox reject` is",
    "inbox resolve": "a decision of a person, as `inbox reject` is",
    "outbox withdraw": "a decision of a person, as `inbox reject` is",
    "quarantine lift": "names a run",
}


def test_every_command_is_searched_or_has_nothing_to_show():
    """A new command is asked for secrets here, or says why it need not be."""
    searched = {question[0] if question[0] in FLAT else " ".join(question[:2]) for question in QUESTIONS}
    assert set(commands(app.root)) <= searched | ASKED | NOTHING_TO_SHOW.keys()
    assert not (searched | ASKED) & NOTHING_TO_SHOW.keys()


FLAT = {"recover", "sql", "audit", "inventory", "doctor"}


def commands(command, path=""):
    """Every command below, by its words."""
    context = click.Context(command)
    if not isinstance(command, click.Group):
        return [path.strip()]
    return [
        name
        for word in command.list_commands(context)
        for name in commands(command.get_command(context, word), f"{path} {word}")
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


@pytest.mark.timeout(180)
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
    rich.ask("ledger", "restore", str(rich.folder / "backup"))
    code, _ = rich.ask("policy", "show", "--export", str(rich.folder / "policies-exported"))
    assert code == 0
    assert list((rich.folder / "policies-exported").rglob("*.cedar"))
    code, replayed = rich.ask("policy", "replay", "active", "--json", "--fail-on", "none")
    assert (code, json.loads(replayed)["decisions"] > 0) == (0, True), replayed
    for decision in some_decisions(rich):
        assert rich.ask("policy", "explain", decision)[0] == 0
        rich.ask("policy", "explain", decision, "--json")
        rich.ask("policy", "eval", "--decision", decision, "--json")
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


def some_decisions(rich):
    """One decision of each phase and answer."""
    _, found = rich.ask("sql", "SELECT min(decision_id) AS d FROM decisions GROUP BY phase, verdict", "--json")
    return [row["d"] for row in json.loads(found)["rows"]]


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


def test_a_word_of_the_baseline_policies_may_be_a_secret(tmp_path, monkeypatch):
    """What comes with the engine is the same everywhere, so nobody's secret stands in it: the engine opens, keeps it as
    it is, and decides. A word that the ledger itself is written in is refused where it is resolved.
    """
    word = a_word_of_the_baseline()
    with LoopbackSystem.start("partner", settings={"tokens": {word: "acct_main"}}) as partner:
        adapter = {"plugin": "http", "base_url": partner.url, "contracts": "package:partner", "token": "env:PARTNER"}
        write_project(tmp_path, {"partner": {**adapter, "account": "acct_main"}})
        monkeypatch.setenv("PARTNER", word)
        with Engine.open(tmp_path, mirror=False) as engine:
            run = engine.run(workflow="w", run_key="1", agent="agent")
            assert run.call("partner.reserve_inventory", {"order": "o-1", "sku": "S", "quantity": 1}).ok
            run.fail("stop", wait_seconds=8)
            stored = [event.event for event in engine.kit.journal.events_after(0)]
            assert engine.verify() == ()
        kept = [event.payload for event in stored if event.kind == "bundle_recorded"]
        assert kept
        assert all(word in payload for payload in kept)
        assert not [event for event in stored if event.kind != "bundle_recorded" and word in event.payload]


def a_word_of_the_baseline():
    """The longest word of the shipped policies that is in no other event: not one of the ledger's own."""
    text = " ".join(path.read_text() for path in policies_path().glob("*.cedar"))
    bare = {word for line in text.splitlines() if line.startswith("//") for word in re.findall(r"[A-Za-z]+", line)}
    fit = [word for word in sorted(bare) if len(word) >= SHORTEST_SECRET and not unfit(word, words())]
    return max(fit, key=len)
