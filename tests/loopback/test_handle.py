"""One handle in both modes: in threads of this process, and as a process that outlives whoever started it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from amends.testing.loopback import ControlError, LoopbackSystem

NAMES = ["jira", "partner", "portal", "slack", "unleash"]
BODY = {"sku": "A-1", "quantity": 1, "order": "o-1"}


def reserve(system, timeout=5.0):
    host = system.url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=timeout)
    headers = {"Authorization": "Bearer partner-token", "Content-Type": "application/json"}
    try:
        connection.request("POST", "/v1/reservations", json.dumps(BODY), headers)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("mode", ["thread", "process"])
def test_both_modes_behave_the_same(mode, tmp_path):
    """Arm, misbehave, count, read the log, reset."""
    state = tmp_path / "partner.sqlite"
    make = LoopbackSystem.start if mode == "thread" else LoopbackSystem.spawn
    with make("partner", state=state, settings={"fee_minor": 9}) as system:
        assert (system.pid == os.getpid()) == (mode == "thread")
        system.arm("drop_after_commit", path="/v1/reservations", how="rst")
        with pytest.raises(ConnectionResetError):
            reserve(system)
        assert (system.fired(), system.count("reservation"), len(system.requests())) == (1, 1, 1)
        assert system.objects("reservations")[0]["status"] == "held"
        system.reset()
        assert (system.faults(), system.effects(), system.requests()) == ([], [], [])
    with pytest.raises(ConnectionRefusedError):
        reserve(system)


def test_state_and_armed_faults_outlive_the_process(tmp_path):
    """Killed and started again on the same file, the system goes on where it stopped."""
    state = tmp_path / "partner.sqlite"
    system = LoopbackSystem.spawn("partner", state=state)
    try:
        assert reserve(system) == 201
        system.arm("refuse", path="/v1/reservations", status=503)
    finally:
        os.kill(system.pid, signal.SIGKILL)
        system.stop()
    with LoopbackSystem.start("partner", state=state) as again:
        assert again.count("reservation") == 1
        assert [reserve(again), reserve(again)] == [503, 201]
        assert [doc["id"] for doc in again.objects("reservations")] == ["res_000001", "res_000002"]


STARTER = """
import sys
from pathlib import Path
from amends.testing.loopback import LoopbackSystem
system = LoopbackSystem.spawn("partner", state=Path(sys.argv[1]))
print(system.url, flush=True)
sys.stdin.read()
"""


def test_a_system_survives_the_kill_of_the_process_that_started_it(tmp_path):
    """Another process attaches by its address and finds everything."""
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path / "p.sqlite")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with starter:
        url = starter.stdout.readline().strip()
        os.killpg(starter.pid, signal.SIGKILL)
    system = LoopbackSystem.attach(url)
    try:
        assert (system.name, system.url, reserve(system)) == ("partner", url, 201)
        assert LoopbackSystem.attach(system.control_url).count("reservation") == 1
    finally:
        os.kill(system.pid, signal.SIGTERM)


def test_the_process_ends_by_itself(tmp_path):
    """A lifetime keeps a forgotten process from staying for good."""
    command = [sys.executable, "-m", "amends.testing.loopback", "portal", "--lifetime-s", "0.1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    assert set(json.loads(done.stdout)) == {"system", "url", "control_url", "pid"}


@pytest.mark.parametrize("name", NAMES)
def test_every_system_starts_and_lists_its_endpoints(name):
    """`about` names system, addresses and endpoints."""
    with LoopbackSystem.start(name) as system:
        about = system.about()
        assert (about["system"], about["url"]) == (name, system.url)
        assert all(line.split()[0] in {"GET", "POST", "PUT", "PATCH", "DELETE"} for line in about["endpoints"])


def test_a_foreign_actor_leaves_no_trace_in_the_request_log():
    """Seeds and foreign edits are not the agent's requests, nor its effects."""
    with LoopbackSystem.start("partner") as system:
        made = system.foreign("POST", "/v1/reservations", BODY, actor="seed", account="acct_main")
        assert made["status"] == 201
        assert (system.requests(), system.effects(), system.counts()) == ([], [], {})
        (effect,) = system.effects(actor=None)
        assert (effect["actor"], effect["account"]) == ("seed", "acct_main")


def test_stop_ends_clients_that_wait():
    """A client in a never_answer gets a closed line when the system stops, not a hang."""
    system = LoopbackSystem.start("partner")
    system.arm("land_late", path="/v1/reservations", how="never_answer", seconds=60)
    started = time.monotonic()
    with system, pytest.raises(TimeoutError):
        reserve(system, timeout=0.1)
    assert time.monotonic() - started < 3


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda system: system.configure(colour="red"), "no setting `colour`"),
        (lambda system: system.control("explode"), "there are lock_carrier"),
        (lambda system: system.control("settle"), "needs the parameter 'id'"),
        (lambda system: system.control("settle", id="adj_9"), "no such object"),
    ],
)
def test_a_wrong_control_call_says_what_there_is(call, text):
    """The error of the control API reaches the caller."""
    with LoopbackSystem.start("partner") as system, pytest.raises(ControlError, match=text):
        call(system)


def test_an_unknown_system_is_refused_by_name():
    """And those that there are, are named."""
    with pytest.raises(ValueError, match="github, jira, partner, portal, shop, slack, unleash"):
        LoopbackSystem.start("fax")


def test_the_portal_recognises_a_repeated_delivery_when_told(portal):
    """One webhook delivered twice is one notice then, and two otherwise."""
    for deduplicate, count in ((False, 2), (True, 3)):
        portal.system.configure(deduplicate=deduplicate)
        for _ in range(2):
            headers = {"X-Atlassian-Webhook-Identifier": f"d-{deduplicate}"}
            portal("POST", "/hooks/jira", {"issue": {"key": "BILL-1"}}, headers=headers)
        assert portal.system.count("notice") == count
