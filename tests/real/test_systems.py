"""Every system comes up, does one real thing, and is gone afterwards without a process."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import psycopg
import pytest

from systems import (
    BLOCKS,
    FastFeature,
    GitHubEmulator,
    Jira820,
    LocalStripe,
    Mitm,
    NotInstalled,
    PostgreSQL,
    Server,
    SlackEmulator,
    StartFailed,
    StripeMock,
    Unleash,
    Vendure,
)
from systems.catalog import ROOT
from systems.leases import Lease, sweep
from systems.web import call


def alive(server):
    """Whether any process of the server still lives, by the lease that they all inherited."""
    return server.lease.is_held()


def test_postgresql_keeps_what_is_committed():
    """Two databases of one cluster do not see each other."""
    with PostgreSQL.start() as postgresql:
        one, two = postgresql.database("orders"), postgresql.database("orders")
        with psycopg.connect(one) as connection:
            connection.execute("CREATE TABLE paid (amount int)")
            connection.execute("INSERT INTO paid VALUES (42)")
        assert postgresql.execute("SELECT amount FROM paid", one) == [(42,)]
        assert postgresql.execute("SELECT count(*) FROM pg_tables WHERE tablename = 'paid'", two) == [(0,)]
        assert postgresql.version() == "18.4"
        assert alive(postgresql.server)
    assert not alive(postgresql.server)


def test_unleash_shows_its_client_what_the_admin_switched_on(postgresql):
    """The product's own client sees the change, not only the admin API."""
    with Unleash.start(postgresql) as unleash:
        made = unleash.admin("POST", "projects/default/features", {"name": "carrier", "type": "release"})
        assert made.status == 201
        assert not unleash.client_sees("carrier")
        switched = unleash.admin("POST", "projects/default/features/carrier/environments/development/on")
        assert switched.status == 200
        unleash.wait_until_client_sees("carrier", on=True)
        assert unleash.version() == BLOCKS["unleash"].version()
    assert not alive(unleash.server)


def test_the_slack_emulator_keeps_a_message():
    """What was posted is in the channel's history."""
    with SlackEmulator.start() as slack:
        posted = slack.ask("chat.postMessage", channel=slack.channel, text="late by a day")
        assert posted["ok"]
        assert [message["ts"] for message in slack.messages()] == [posted["ts"]]
    assert not alive(slack.server)


def test_the_github_emulator_keeps_a_pull_request():
    """A branch of a fresh repository becomes a pull request."""
    with GitHubEmulator.start() as github:
        repository = github.repository("billing")
        main = github.ask("GET", f"/repos/{repository}/git/ref/heads/main").data["object"]["sha"]
        ref = {"ref": "refs/heads/fix", "sha": main}
        assert github.ask("POST", f"/repos/{repository}/git/refs", ref).status == 201
        asked = {"title": "Fix", "head": "fix", "base": "main", "draft": True}
        assert github.ask("POST", f"/repos/{repository}/pulls", asked).status == 201
        assert len(github.ask("GET", f"/repos/{repository}/pulls").data) == 1
    assert not alive(github.server)


def test_the_stripe_mock_charges_once_for_one_key():
    """The second request under one key is answered with the first one's charge."""
    with StripeMock.start() as stripe:
        charge = {"amount": 500, "currency": "eur", "source": "tok_visa"}
        one, two = (stripe.ask("POST", "charges", charge, key="act-1") for _ in range(2))
        assert one.data["id"] == two.data["id"]
        assert len(stripe.ask("GET", "charges").data["data"]) == 1
    assert not alive(stripe.server)


def test_localstripe_takes_one_key_for_two_payments():
    """It has no idempotency, and a reset forgets all."""
    with LocalStripe.start() as stripe:
        wanted = {"amount": 500, "currency": "eur"}
        for _ in range(2):
            assert stripe.ask("POST", "payment_intents", wanted, key="act-1").status == 200
        assert len(stripe.ask("GET", "payment_intents").data["data"]) == 2
        stripe.reset()
        assert stripe.ask("GET", "payment_intents").data["data"] == []
    assert not alive(stripe.server)


def test_the_shop_sells(postgresql):
    """The seeded product is in the store."""
    with Vendure.start(postgresql) as vendure:
        assert vendure.stock_on_hand() == vendure.stock == 1000
        order = vendure.ask("mutation { createDraftOrder { code state } }")["createDraftOrder"]
        assert order["state"] == "Draft"
    assert not alive(vendure.server)


def test_jira820_keeps_an_issue():
    """An issue is there under the key that was answered."""
    with Jira820.start() as jira:
        fields = {"project": {"key": jira.project}, "summary": "Late", "issuetype": {"name": "Task"}}
        key = jira.ask("POST", "issue", {"fields": fields}).data["key"]
        assert jira.ask("GET", f"issue/{key}").data["fields"]["summary"] == "Late"
    assert not alive(jira.server)


def test_fast_feature_evaluates_what_was_made():
    """A flag of the admin API is what a consumer is told."""
    with FastFeature.start() as flags:
        made = {"key": "carrier", "variants": {"on": True, "off": False}, "default_variant": "on"}
        assert flags.ask("POST", body=made).status == 201
        assert flags.evaluate("carrier").data["value"] is True
        assert flags.ask("POST", body=made).status == 409
    assert not alive(flags.server)


def test_the_flagd_reader_reads_a_file(flagd_reader, tmp_path):
    """A flag's variant is told, and the absence of one too."""
    path = tmp_path / "flags.json"
    flag = {"state": "ENABLED", "variants": {"on": True, "off": False}, "defaultVariant": "on"}
    path.write_text(json.dumps({"flags": {"carrier": flag}}))
    seen = flagd_reader.read(path, "carrier")
    assert (seen.value, seen.variant, seen.error) == (True, "on", "")
    assert flagd_reader.read(path, "other").error == "FLAG_NOT_FOUND"


def test_the_fault_proxy_ends_with_its_lines():
    """Nobody listens on a line once the proxy is stopped."""
    with StripeMock.start() as stripe, Mitm.start() as mitm:
        line = mitm.line(stripe.url)
        headers = {"authorization": f"Bearer {stripe.key}"}
        assert call("GET", f"{line.url}/v1/charges", headers=headers).status == 200
        mitm.stop()
        with pytest.raises(ConnectionRefusedError):
            call("GET", f"{line.url}/v1/charges", headers=headers)
        assert not alive(mitm.server)


def test_a_system_that_ends_too_early_says_why():
    """The error shows the end of the log, and nothing is left."""
    lease = Lease.take()
    with pytest.raises(StartFailed, match=r"broken ended with 3 before it was ready:\n.*no such setting"):
        Server.start(
            "broken",
            [sys.executable, "-c", "import sys; print('no such setting', flush=True); sys.exit(3)"],
            lease=lease,
            ready=lambda _: None,
        )
    assert not lease.is_held()


def test_a_system_that_never_answers_is_ended():
    """The wait is bounded, and its children end with it."""
    lease = Lease.take()
    silent = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    with pytest.raises(StartFailed, match=r"silent was not ready after 0\.3 s"):
        Server.start("silent", [sys.executable, "-c", silent], lease=lease, ready=lambda _: None, timeout_seconds=0.3)
    assert not lease.is_held()


def test_a_killed_test_process_leaves_nothing_after_the_sweep():
    """The sweep ends the server of a test process that is gone, and of no other."""
    with StripeMock.start() as mine:
        script = """
        import os, signal
        from systems import StripeMock
        print(StripeMock.start().server.lease.port, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """
        killed = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
            stdout=subprocess.PIPE,
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL
        port = int(killed.stdout)
        left = Lease(port, mine.server.lease.path.with_name(f"{port}.lease"), None)
        assert left.is_held()
        assert any("stripe_mock" in name for name in sweep())
        assert not left.is_held()
        assert mine.ask("GET", "charges").status == 200


def test_a_system_that_is_missing_is_an_error(monkeypatch, tmp_path):
    """It names the command that brings it; nothing is skipped."""
    monkeypatch.setattr("systems.catalog.HOME", tmp_path)
    with pytest.raises(NotInstalled, match=r"`jira820` is not installed .* `make test-real`"):
        Jira820.start()
