"""`amends worker`: recovery for as long as the process lives."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING

import click

from amends.core import public
from amends.core.errors import SystemUnavailable
from amends.surfaces.cli.app import Session
from amends.surfaces.cli.common import output_option, whole_engine

if TYPE_CHECKING:
    from amends.bootstrap import Engine
    from amends.core.rows import RunState

_SLOWEST_POLL_SECONDS = 60.0


@click.command()
@click.option(
    "--poll", "poll_seconds", default=2.0, show_default=True, type=click.FloatRange(0.1, _SLOWEST_POLL_SECONDS)
)
@click.option("--rounds", default=0, type=click.IntRange(0), help="Stop after so many looks; 0: never.")
@output_option
def worker(session: Session, poll_seconds: float, rounds: int) -> None:
    """Recover dead runs, release what may leave, and page people, until told to stop (SIGINT or SIGTERM).

    Any number of workers may run at once: each run is driven by one of them. Policies that change are taken up at the
    next look, if they are sound.
    """
    stopping = threading.Event()
    _stop_on_signals(stopping)
    done = 0
    with whole_engine(session, mirror=True) as engine:
        session.output.say(f"looking every {poll_seconds:g} s; stop with Ctrl-C")
        pause = poll_seconds
        while not stopping.is_set():
            pause = poll_seconds if _round(session, engine) else min(_SLOWEST_POLL_SECONDS, pause * 2)
            done += 1
            if rounds and done >= rounds:
                break
            stopping.wait(pause)
    session.output.say("stopped: every lease is released")


def _round(session: Session, engine: Engine) -> bool:
    """One look. False if the journal could not be asked: the next one comes later."""
    try:
        _reload(session, engine)
        for state in engine.sweep():
            _show(session, state)
    except SystemUnavailable as error:
        session.output.say(f"{error.message}; trying again", "yellow")
        return False
    return True


def _show(session: Session, state: RunState) -> None:
    run = state.run
    if session.output.as_json:
        session.output.line_document({"run_id": run.run_id, "run_status": run.status.value})
    else:
        told = public.run_message(public.of_run(state))
        session.output.line(f"{run.workflow}/{run.run_key} {run.run_id} {run.status}: {told}")


def _reload(session: Session, engine: Engine) -> None:
    """Take up the site's policies if they have changed; say so, or say what is wrong with them."""
    reloaded = engine.reload_policies()
    if reloaded.outcome == "activated":
        session.output.say(f"policies: {reloaded.version} decides from now on")
    elif reloaded.outcome == "rejected":
        session.output.say(f"policies: {reloaded.version} goes on deciding, the new ones are refused", "yellow")
        for problem in reloaded.problems:
            session.output.say(f"  {problem}", "yellow")


def _stop_on_signals(stopping: threading.Event) -> None:
    """The first signal lets the run in hand come to rest; a second one ends the process: the lease tells others."""

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
