"""Commands over a real project: what they print, what they change, how they exit."""

import fcntl
import re

import pytest

from amends import Denied


def effects(project):
    folder = project.parent / "shop"
    return sorted(path.name.split("-")[0] for path in folder.iterdir()) if folder.exists() else []


# --- runs ----------------------------------------------------------------------------------------------------


def test_runs_are_listed_with_status_and_reason(amends, committed):
    """Oldest first; `--status` keeps some."""
    assert amends("runs", "list", "--json").json["runs"][0]["run_id"] == committed
    assert committed in amends("runs", "list").out
    assert amends("runs", "list", "--status", "needs_human", "--json").json["runs"] == []


@pytest.mark.parametrize("name", ["good", "order/good"])
def test_a_run_is_shown_by_key_and_answers_the_four_questions(amends, committed, name):
    """Each question stands there, and each line has its evidence."""
    told = amends("runs", "show", name).out
    for question in ("Which effects exist?", "Which might?", "What can be undone?", "Who decides?"):
        assert question in told
    assert "shop.reserve" in told
    assert "answered" in told


def test_a_run_is_shown_by_the_end_of_its_id(amends, committed):
    """Ids of one minute begin alike, so their ends tell them apart."""
    document = amends("runs", "show", committed[-8:], "--json").json
    assert document["run_id"] == committed
    (action,) = document["actions"]
    assert action["registered_seq"] < action["sent_seq"]
    assert action["decision"]["policy_version"]
    assert action["evidence"]


def test_an_unknown_run_is_not_found(amends, project):
    """Exit 3, and the remedy; with --json the error is the document."""
    assert "amends runs list" in amends("runs", "show", "nothing", code=3).err
    assert amends("runs", "show", "nothing", "--json", code=3).json["error"]["code"] == "unknown_name"


def test_a_report_is_what_the_owner_gets(amends, committed):
    """The same document as `Engine.run_report`."""
    assert amends("runs", "report", "good", "--json").json["owner"] == "maya"


# --- recovery ------------------------------------------------------------------------------------------------


def test_a_dead_run_is_recovered_and_its_effect_is_gone(amends, engine, project):
    """What a detached, open run did is taken back, and the real system was read again."""
    run = engine.run(workflow="order", run_key="dead", agent="coder")
    assert run.call("shop.reserve", {"name": "lamp"}).ok
    run.detach()
    assert effects(project) == ["reservation"]
    amends("recover")
    assert effects(project) == []
    assert amends("runs", "show", "dead", "--json").json["taken_back"][0]["evidence"] == "undone"


def test_a_driven_run_is_left_alone(amends, engine):
    """Exit 5 names the holder."""
    run = engine.run(workflow="order", run_key="alive", agent="coder")
    assert amends("recover", "alive", "--json", code=5).json["error"]["code"] == "conflict"
    run.finish()


def test_recover_without_anything_to_do_says_so(amends, project):
    """Talk goes to standard error; there is no data."""
    told = amends("recover")
    assert told.out == ""
    assert "no run waits" in told.err


def test_a_checkpoint_needs_a_run(amends, project):
    """Usage errors exit 2."""
    assert "--to needs a RUN" in amends("recover", "--to", "x", code=2).err


def test_a_worker_recovers_and_stops(amends, engine, project):
    """The same recovery, for as long as it lives."""
    run = engine.run(workflow="order", run_key="dead", agent="coder")
    run.call("shop.reserve", {"name": "lamp"})
    run.detach()
    told = amends("worker", "--rounds", "1", "--json")
    assert '"run_status": "recovering"' in told.out or '"run_status": "recovered"' in told.out
    assert effects(project) == []


# --- people --------------------------------------------------------------------------------------------------


def test_an_approval_is_listed_shown_given_and_the_notice_leaves(amends, waiting, project):
    """A yes by the command line, then recovery releases; the yes is in the ledger with its channel."""
    (item,) = amends("inbox", "list", "--json").json["approvals"]
    assert "shop.notify" in amends("inbox", "show", item["approval_id"]).out
    assert effects(project) == ["reservation"]
    told = amends(
        "inbox", "approve", item["approval_id"], "--by", "maya", "--comment", "fine", "--digest", item["digest"]
    )
    assert "approved" in told.out
    amends("recover")  # the decision has woken the run
    assert effects(project) == ["notice", "reservation"]
    assert "nothing waits" in amends("inbox", "list").err


def test_nobody_approves_his_own_run(amends, waiting):
    """The initiator's yes is refused, and the item stays."""
    (item,) = amends("inbox", "list", "--json").json["approvals"]
    assert "started this run" in amends("inbox", "approve", item["approval_id"], "--by", "noah", code=2).err
    assert amends("inbox", "list", "--json").json["approvals"]


def test_a_stranger_is_not_found(amends, waiting):
    """Only people of amends.toml decide."""
    (item,) = amends("inbox", "list", "--json").json["approvals"]
    assert "is not a person" in amends("inbox", "approve", item["approval_id"], "--by", "eve", code=3).err


def test_another_digest_than_shown_is_a_conflict(amends, waiting):
    """What was shown is what is approved."""
    (item,) = amends("inbox", "list", "--json").json["approvals"]
    amends("inbox", "approve", item["approval_id"], "--by", "maya", "--digest", "0" * 64, code=5)


def test_a_rejected_item_is_withdrawn_and_never_leaves(amends, waiting, project):
    """The second decision learns that there was a first."""
    (item,) = amends("inbox", "list", "--json").json["approvals"]
    amends("inbox", "reject", item["approval_id"], "--by", "maya")
    amends("inbox", "approve", item["approval_id"], "--by", "maya", code=3)
    amends("recover", "asks")
    assert "notice" not in effects(project)


def test_who_decides_may_come_from_the_environment(amends, waiting, monkeypatch):
    """`AMENDS_PERSON` stands for `--by`."""
    monkeypatch.setenv("AMENDS_PERSON", "maya")
    (item,) = amends("inbox", "list", "--json").json["approvals"]
    assert amends("inbox", "approve", item["approval_id"][-10:], "--json").json["decided"] == "approved"


def test_an_outbox_item_is_listed_and_withdrawn(amends, waiting, project):
    """It never leaves."""
    (item,) = amends("outbox", "list", "--json").json["items"]
    assert item["capability"] == "shop.notify"
    amends("outbox", "withdraw", item["action_id"], "--by", "maya")
    assert "the outbox is empty" in amends("outbox", "list").err


def test_a_pause_stops_calls_until_it_is_lifted(amends, engine):
    """Set, listed, in force, lifted."""
    amends("pause", "set", "workflow:order", "--by", "maya", "--reason", "incident 7")
    assert "incident 7" in amends("pause", "list").out
    run = engine.run(workflow="order", run_key="1", agent="coder")
    with pytest.raises(Denied, match="pause"):
        run.call("shop.reserve", {"name": "lamp"})
    amends("pause", "lift", "workflow:order", "--by", "maya")
    assert amends("pause", "list", "--json").json["pauses"] == []
    run.finish()


def test_a_scope_that_is_none_is_a_usage_error(amends, project):
    """The remedy lists the three forms."""
    assert "tenant:NAME" in amends("pause", "set", "everything", "--by", "maya", "--reason", "x", code=2).err


# --- the ledger ----------------------------------------------------------------------------------------------


def test_sql_is_exact_at_once(amends, committed):
    """What was just recorded is in the answer; as table, JSON and CSV."""
    query = "SELECT capability, status FROM actions"
    assert amends("sql", query, "--json").json["rows"] == [{"capability": "shop.reserve", "status": "succeeded"}]
    assert amends("sql", query, "--csv").out == "capability,status\nshop.reserve,succeeded\n"
    assert "shop.reserve" in amends("sql", query).out


def test_metrics_and_views_are_listed_and_asked_by_name(amends, committed):
    """Their names, what they say, their rows and columns."""
    assert "unknown_rate" in amends("sql", "metrics").out
    assert amends("sql", "metrics", "unknown_rate", "--json").json["rows"][0]["intents"] == 1
    assert "run_id" in amends("sql", "views", "actions").out
    amends("sql", "metrics", "nothing", code=3)
    amends("sql", "views", "nothing", code=3)
    amends("sql", "SELECT", "1", code=2)


@pytest.mark.parametrize("query", ["SELECT nope", "INSERT INTO events SELECT * FROM events", "COPY events TO 'x.csv'"])
def test_a_statement_that_is_wrong_or_writes_is_refused(amends, committed, query):
    """Exit 2; the ledger is as it was."""
    amends("sql", query, code=2)
    amends("ledger", "verify")


def test_a_cut_answer_says_so(amends, committed):
    """A limit never hides that there is more."""
    told = amends("sql", "SELECT * FROM events", "--limit", "1")
    assert "cut after 1 rows" in told.err


def test_the_ledger_is_described_verified_rebuilt_and_copied(amends, committed, tmp_path):
    """A backup holds the key, too, and never overwrites."""
    events = amends("ledger", "info", "--json").json["journal"]["events"]
    assert amends("ledger", "verify", "--json").json == {"ok": True, "events": events, "problems": []}
    assert amends("ledger", "rebuild", "--json").json["events"] == events
    copy = tmp_path / "copy"
    assert amends("ledger", "backup", copy, "--json").json["events"] == events
    assert {path.name for path in copy.iterdir()} >= {"journal.sqlite", "digest.key"}
    amends("ledger", "backup", copy, code=2)


# --- adapters and policies -----------------------------------------------------------------------------------


def test_audit_answers_every_question_of_a_whole_adapter(amends, project):
    """Ready: no blank."""
    document = amends("audit", "--ready", "--json").json
    assert document["ready"]
    by_name = {line["capability"]: line for line in document["capabilities"]}
    assert by_name["shop.reserve"]["undo"] == "cancel"
    assert "shop:reserve" in by_name["shop.reserve"]["authorized_by"]
    assert "outbox" in by_name["shop.notify"]["undo"]
    assert "permitted outcomes" in amends("audit", "shop.reserve").out


def test_a_capability_nobody_may_call_is_a_blank_and_not_ready(amends, project, distributions):
    """Without a permit `authorized by` is blank, and --ready exits 1."""
    source = """
    from pathlib import Path
    from amends.spi import hookimpl
    from amends.testing import tiny

    @hookimpl
    def amends_register_capabilities(context, registry):
        registry.capability(tiny.TinyCapability(tiny.reserve("bare"), Path()))
    """
    distributions.add("bare", source)
    with project.open("a", encoding="utf-8") as file:
        file.write("\n[adapters.bare]\n")
    assert "blank" in amends("audit", "bare.reserve").out
    assert amends("audit", "--ready", "--json", code=1).json["capabilities"][0]["blanks"] == ["authorized_by"]


def test_inventory_names_what_is_there(amends, project):
    """Capabilities, people, checks."""
    document = amends("inventory", "--json").json
    assert [one["capability"] for one in document["capabilities"]] == ["shop.notify", "shop.reserve"]
    assert document["checks"] == ["all_actions_succeeded", "shop_open"]
    assert "maya (tier 2 operations)" in amends("inventory").out


def test_plugins_are_listed_without_import_and_checked_by_loading(amends, project, distributions):
    """A broken one is named with its remedy, exits 1, and is not imported by `list`."""
    distributions.add("broken", "raise SystemExit(9)")
    with project.open("a", encoding="utf-8") as file:
        file.write("\n[adapters.broken]\n")
    assert "broken" in amends("plugins", "list").out
    document = amends("plugins", "check", "--json", code=1).json
    assert document["problems"][0]["stage"] == "import"
    assert [one["adapter"] for one in document["adapters"]] == ["shop"]
    assert "left out" in amends("inventory").err


def test_policies_are_checked_and_tested(amends, project):
    """Sound as shipped; a site's mistake is named with file and line."""
    assert "sound" in amends("policy", "check").out
    assert re.search(r"\d+ passed, 0 failed", amends("policy", "test").out)
    assert amends("policy", "test", "--json").json["ok"]
    folder = project.parent / "policies"
    folder.mkdir()
    (folder / "bundle.toml").write_text('label = "1.0.0-dev"\n', encoding="utf-8")
    (folder / "site.cedar").write_text('@id("site:x")\npermit (principal, action, resource);', encoding="utf-8")
    with project.open("a", encoding="utf-8") as file:
        file.write('\n[policies]\nbundle = "policies"\n')
    told = amends("policy", "check", code=1)
    assert "site.cedar:" in told.out
    assert "@reason" in told.out


def test_a_capability_without_a_drill_says_so(amends, project):
    """And arguments that are no object are a usage error."""
    amends("drill", "shop.reserve", "--args", '{"name": "x"}', code=2)
    assert "JSON object" in amends("drill", "shop.reserve", "--args", "[1]", code=2).err
    amends("drill", "shop.nothing", code=3)


# --- settings and trouble ------------------------------------------------------------------------------------


def test_wrong_settings_are_a_usage_error_of_every_command(amends, project):
    """With the key and the remedy."""
    project.write_text("[project]\ntenant = 'a'\n", encoding="utf-8")
    for command in (("runs", "list"), ("recover",), ("sql", "SELECT 1"), ("audit",), ("policy", "check")):
        assert "project.environment" in amends(*command, code=2).err


def test_a_journal_that_is_none_is_named(amends, project):
    """A file that SQLite cannot read is never overwritten."""
    folder = project.parent / ".amends"
    folder.mkdir()
    (folder / "journal.sqlite").write_bytes(b"this is no database" * 100)
    answer = amends("doctor", "--json", code=1).json
    assert any(f["subject"] == "journal" and f["level"] == "problem" for f in answer["findings"])
    assert (folder / "journal.sqlite").read_bytes().startswith(b"this is no database")


def test_a_frozen_process_with_the_write_lock_is_named_and_nothing_waits_for_ever(amends, engine, project):
    """Exit 8 after the configured patience; the message names the holder."""
    text = project.read_text(encoding="utf-8")
    project.write_text(text.replace("[storage]", "[storage]\nlock_wait_seconds = 0.1"), encoding="utf-8")
    lock = project.parent / ".amends" / "journal.lock"
    with lock.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        error = amends("runs", "list", "--json", code=8).json["error"]
    assert error["code"] == "journal_busy"
    assert error["hint"]
    amends("runs", "list")


def test_a_storage_folder_that_cannot_be_made_is_unreachable(amends, project):
    """Here a file stands in its way."""
    (project.parent / ".amends").write_text("in the way", encoding="utf-8")
    told = amends("runs", "list", code=8)
    assert "cannot be made" in told.err
