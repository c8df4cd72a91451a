"""What is fuzzed: readers of bytes that somebody else wrote. Each gives a value or an error it has declared.

Anything else that a reader raises is a fault, and so is a law that its value breaks, a hang, or the end of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from amends import config
from amends.backends.cedar import testfile
from amends.backends.cedar.compile import compile_sources
from amends.core import events
from amends.core.canonical import canonical_bytes
from amends.core.errors import AmendsError, ConfigError, CorruptLedger, InvalidInput
from amends.core.reading import LONGEST_SECONDS, json_of, toml_of
from amends.ports.lines import from_line, to_line
from amends.spi import Refused
from amends.spi.answers import Ambiguous, HttpAnswer, HttpRequest, Unreadable, judge, judge_read
from amends.testing.scenarios.loading import FILE_NAME, parse_scenario
from amends_http.declaration import Declaration

_ROOT = Path(__file__).parents[2]
_REQUEST = HttpRequest("POST", "https://partner.test/v1/orders", headers={"Authorization": "Bearer a-secret-of-tests"})


@dataclass(frozen=True)
class Target:
    """`read` takes any bytes and raises only what `refuses` names; `seeds` are files where the search begins."""

    read: Callable[[bytes], object]
    refuses: tuple[type[Exception], ...]
    seeds: tuple[str, ...]  # patterns, from the project's root

    def beginnings(self) -> Iterator[bytes]:
        """The seeds' bytes; of a file of lines, each line."""
        for pattern in self.seeds:
            for path in sorted(_ROOT.glob(pattern)):
                data = path.read_bytes()
                yield from data.splitlines() if path.suffix == ".jsonl" else [data]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _settings(data: bytes) -> None:
    found = config.parse(toml_of(_text(data)), Path("amends.toml"))
    _holds(found.engine.lease_seconds <= LONGEST_SECONDS)


def _contract(data: bytes) -> None:
    Declaration.model_validate(toml_of(_text(data)))


def _scenario(data: bytes) -> None:
    parse_scenario(toml_of(_text(data)), Path("scenarios/any") / FILE_NAME)


def _policy(data: bytes) -> None:
    compile_sources({**_schema(), "site/fuzz.cedar": _text(data)}, "fuzz", owned={})


def _policy_schema(data: bytes) -> None:
    compile_sources({**_schema(), "site/fuzz.cedarschema": _text(data)}, "fuzz", owned={})


@cache
def _schema() -> dict[str, str]:
    return {
        f"baseline/{path.name}": path.read_text(encoding="utf-8")
        for path in _ROOT.glob("policies/schema/*.cedarschema")
    }


def _policy_test(data: bytes) -> None:
    testfile.parse(_text(data))


def _payload(data: bytes) -> None:
    body = events.decode(_text(data), "of the fuzzer")
    _holds(events.decode(events.encode(body), "written again") == body)


def _line(data: bytes) -> None:
    stored = from_line(_text(data))
    _holds(from_line(to_line(stored)) == stored)


def _json(data: bytes) -> None:
    canonical_bytes(json_of(data))  # whatever is read as JSON has a digest, or is refused as no value of ours


def _answer(data: bytes) -> None:
    """The first line is status and `Retry-After`, the rest the body."""
    head, _, content = data.partition(b"\n")
    status = 100 + int.from_bytes(head[:2], "big") % 500
    headers = {"retry-after": head[2:].decode("latin-1"), "date": "Mon, 30 Nov 2026 09:00:00 GMT"}
    answer = HttpAnswer(status=status, headers=headers, content=content, request=_REQUEST)
    waits = answer.retry_after_seconds()
    _holds(waits is None or 0 <= waits <= LONGEST_SECONDS)
    _holds("a-secret-of-tests" not in answer.excerpt())
    with suppress(Unreadable):
        _holds(judge_read(answer, ()).ok)
    _holds(judge(answer, ()).ok)


def _holds(law: bool) -> None:
    if not law:
        raise AssertionError("a law of this reader does not hold for what it read")


TARGETS = {
    "settings": Target(_settings, (ConfigError, ValueError), ("scenarios/*/amends.toml",)),
    "contract": Target(_contract, (ValueError,), ("scenarios/*/contracts/*.toml", "plugins/http/src/**/*.toml")),
    "scenario": Target(_scenario, (AmendsError, ValueError), ("scenarios/*/scenario.toml",)),
    "policy": Target(_policy, (), ("policies/*.cedar", "scenarios/**/*.cedar")),
    "policy-schema": Target(_policy_schema, (), ("plugins/**/*.cedarschema", "policies/schema/*.cedarschema")),
    "policy-test": Target(_policy_test, (ValueError,), ("policies/tests/*.json",)),
    "payload": Target(_payload, (CorruptLedger,), ("tests/golden/ledgers/*.jsonl",)),
    "line": Target(_line, (InvalidInput,), ("tests/golden/ledgers/*.jsonl",)),
    "json": Target(_json, (InvalidInput, ValueError), ("tests/golden/*.json",)),
    "answer": Target(_answer, (Refused, Ambiguous), ("tests/golden/*.json",)),
}
