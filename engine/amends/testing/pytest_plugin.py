"""The pytest plugin of the kit (entry point `pytest11`): the bench of the conformance matrix, and its report.

It is loaded wherever amends and pytest are installed together, so it changes nothing for tests that have no bench, and
imports the engine only when one does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from amends.testing.conformance.bench import Bench
    from amends.testing.conformance.matrix import AdapterMatrix
    from amends.testing.conformance.subject import Subject
    from amends.testing.conformance.watched import Drilled

pytest.register_assert_rewrite("amends.testing.conformance")  # a failed test of the matrix shows its values

_NOT_TRIED = "amends: not tried"
_SUBJECT = "amends: subject"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test of a matrix once per subject."""
    if "_subject" in metafunc.fixturenames:  # a `bench` that is somebody else's fixture does not ask for it
        matrix: type[AdapterMatrix[Any]] = vars(metafunc)["cls"]
        metafunc.parametrize("_subject", matrix.subjects, ids=str)


@pytest.fixture(scope="class")
def _running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The system of a matrix, one for all its tests in this process."""
    matrix: AdapterMatrix[Any] = request.node.cls()
    with matrix.system(tmp_path_factory.mktemp("system")) as system:
        yield system


@pytest.fixture(scope="class")
def _drilled() -> Drilled:
    """What was drilled on that system."""
    return {}


@pytest.fixture
def bench(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    _running: Any,
    _drilled: Drilled,
    _subject: Subject[Any],
) -> Iterator[Bench[Any]]:
    """The bench of one test. When the test is over, claims are held against the system, and armed faults must have
    fired.
    """
    from amends.testing.conformance.bench import Bench  # noqa: PLC0415 - the engine only where it is needed

    matrix = cast("AdapterMatrix[Any]", request.instance)
    request.node.user_properties.append((_SUBJECT, _subject.capability))
    secrets = matrix.secrets(_running)
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "line").mkdir()
    line = matrix.line(_running, tmp_path / "line")
    made: Bench[Any] = Bench(
        _subject,
        _running,
        line,
        lambda address: matrix.adapters(_running, address),
        tmp_path / "project",
        secrets,
        sha256(request.node.nodeid.encode()).hexdigest()[:8],
        _drilled,
    )
    exempt = _subject.exempt.get(request.node.originalname)
    try:
        if exempt is not None:
            request.node.user_properties.append((_NOT_TRIED, exempt))
            request.node.stash[_EXEMPT] = True
        yield made
        wrong = made.close() if exempt is None and not request.node.stash.get(_EXEMPT, False) else []
    finally:
        made.abandon()
        line.stop()
    if wrong:
        pytest.fail("; ".join(wrong), pytrace=False)


_EXEMPT = pytest.StashKey[bool]()


def _say_nothing(**_: object) -> None:
    """Stands in for a test from which its subject is exempt."""


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """A test that says nothing about a capability is not run, or ends early; the report tells how many, and why."""
    if pyfuncitem.stash.get(_EXEMPT, False):
        pyfuncitem.obj = _say_nothing  # a wrapper has to yield: what it yields to must do nothing
    try:
        return (yield)
    except Exception as error:
        if type(error).__name__ != "NotTried" or "bench" not in pyfuncitem.fixturenames:
            raise
        pyfuncitem.user_properties.append((_NOT_TRIED, str(error)))
        pyfuncitem.stash[_EXEMPT] = True
        return True


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The matrix: per capability, how many tests held, failed, and said nothing, with the reasons."""
    held: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    not_tried: dict[str, Counter[str]] = {}
    for outcome, tally in (("passed", held), ("failed", failed), ("error", failed)):
        for report in terminalreporter.stats.get(outcome, []):
            told = dict(getattr(report, "user_properties", []))
            subject = told.get(_SUBJECT)
            if subject is None or (outcome == "passed" and report.when != "call"):
                continue
            reason = told.get(_NOT_TRIED)
            if reason is None:
                tally[subject] += 1
            else:
                not_tried.setdefault(subject, Counter())[reason] += 1
    subjects = sorted({*held, *failed, *not_tried})
    if not subjects:
        return
    terminalreporter.section("conformance matrix")
    for subject in subjects:
        reasons = not_tried.get(subject, Counter())
        terminalreporter.write_line(
            f"{subject}: {held[subject]} held, {failed[subject]} failed, {sum(reasons.values())} say nothing about it"
        )
        for reason, count in sorted(reasons.items()):
            terminalreporter.write_line(f"    {count} x {reason}")
