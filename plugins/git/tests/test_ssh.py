"""Remotes over ssh: the configured command carries git's, and a stand-in runs it here instead of on a host."""

import pytest

from amends_git.options import options_of

STAND_IN = """#!/bin/sh
# Like ssh: options, host, command. Says which host was asked for, and runs the command on this machine.
[ "$1" = -G ] && exit 0
while [ "${1#-}" != "$1" ]; do case "$1" in -o|-p|-i) shift;; esac; shift; done
echo "$1 $2" >> "$0.log"
[ -e "$0.down" ] && exit 255
answer=0
eval "$2" || answer=$?
[ -e "$0.cut" ] && rm "$0.cut" && exit 255
exit $answer
"""


@pytest.fixture
def ssh(desk):
    """The stand-in; the desk's remote is reached over it."""
    script = desk.root / "stand-in"
    script.write_text(STAND_IN)
    script.chmod(0o755)
    desk.settings = {"remote": f"ssh://git@host.test{desk.remote}", "ssh_command": f"{script} -oBatchMode=yes"}
    return script


def test_branch_goes_over_ssh_and_back(desk, ssh):
    """Read, push, look and undo all go through the configured command."""
    action = desk.action("create_branch", branch="feature/field")
    action.run()
    assert desk.remote_ref("refs/heads/feature/field") == action.done.reference
    assert (action.probe().seen, action.rung()) == ("applied", "delete")
    action.undo()
    assert action.verify().seen == "absent"
    said = ssh.with_name("stand-in.log").read_text()
    assert "git@host.test git-upload-pack" in said
    assert "git@host.test git-receive-pack" in said


def test_line_that_breaks_after_the_push_does_not_hide_it(desk, ssh):
    """ssh ends with an error after the ref moved: the remote alone decides."""
    action = desk.action("create_branch", branch="feature/field")
    action.prepare()
    desk.hook("post-receive", f"touch {ssh}.cut")
    assert action.send().reference == desk.remote_ref("refs/heads/feature/field")
    assert not ssh.with_name("stand-in.cut").exists()


def test_host_that_cannot_be_reached_tells_nothing(desk, ssh):
    """Without an answer a probe cannot tell, and a call does not start."""
    action = desk.action("create_branch", branch="feature/field")
    action.prepare()
    ssh.with_name("stand-in.down").touch()
    assert action.probe().seen == "inconclusive"


def test_short_form_of_an_address_is_a_remote(desk, ssh):
    """`git@host:path` is an address, not a folder of this host, so a push may land late."""
    desk.settings = {**desk.settings, "remote": f"git@host.test:{desk.remote}"}
    options = options_of(desk.context())
    assert options.repositories["billing"].remote == f"git@host.test:{desk.remote}"
    assert options.final_after_seconds > 2
    desk.action("create_branch", branch="feature/field").run()
    assert desk.remote_ref("refs/heads/feature/field")
