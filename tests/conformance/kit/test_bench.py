"""The bench is honest: what the ledger claims is held against the system, whatever a test was about."""

import pytest

from amends.core.status import ActionStatus
from amends.testing.conformance import CallLine, Fault, Subject
from amends.testing.conformance.bench import Bench, NotTried
from amends.testing.distributions import MadeDistributions

SECRET = "the-shop-keeper's-word"


class Shop:
    """The folder of the tiny shop, and what the test makes it say."""

    def __init__(self, folder):
        self.folder = folder
        self.says = None

    def count(self, args):
        return len(list(self.folder.glob("reservation-*"))) if self.says is None else self.says


@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path / "goods")


@pytest.fixture
def bench(shop, tmp_path, monkeypatch):
    made = MadeDistributions(tmp_path / "site")
    made.add("amends-shop", entry_point="shop", target="amends.testing.tiny")
    monkeypatch.syspath_prepend(str(made.folder))
    subject = Subject(
        capability="shop.reserve",
        args=lambda _, word: {"name": word},
        effects=lambda system, args: system.count(args),
    )
    bench = Bench(
        subject,
        shop,
        CallLine(),
        lambda address: {"shop": {"folder": str(shop.folder)}},
        tmp_path / "project",
        {"SHOP_WORD": SECRET},
        "n",
    )
    yield bench
    bench.abandon()


def test_what_is_as_it_was_claimed_is_not_told(bench):
    """Done, taken back, and nothing to say."""
    assert bench.do().status is ActionStatus.SUCCEEDED
    assert bench.recover().run.status == "recovered"
    assert bench.close() == []


def test_a_success_without_an_effect_is_told(bench, shop):
    """The ledger says `succeeded`, and the system has nothing."""
    bench.do()
    shop.says = 0
    assert bench.close() == ["`one` is recorded as succeeded, and the system has no such effect"]


def test_a_compensation_that_left_something_is_told(bench, shop):
    """The ledger says `compensated` and `recovered`, and the system still has it."""
    bench.do()
    bench.recover()
    shop.says = 1
    assert bench.close() == [
        "`one` is recorded as compensated, and the system has 1 such effects",
        "the run of `one` is recorded as recovered, and the system has 1 such effects",
    ]


def test_a_failure_that_left_something_is_told(bench, shop):
    """The call was refused, the ledger says `failed`, and the system has it."""
    bench.arm(Fault("denied", status=403))
    assert bench.do().status is ActionStatus.FAILED
    shop.says = 2
    assert bench.close() == ["`one` is recorded as failed, and the system has 2 such effects"]


def test_a_fault_that_never_happened_is_told(bench):
    """A test whose fault met no request has tested nothing."""
    bench.arm(Fault("lost"))
    bench.contract  # noqa: B018 - the engine is open, and nothing is called
    assert bench.close() == ["the fault `lost(fin)` was armed and never happened"]


def test_a_secret_in_a_file_is_found(bench):
    """In any file of the engine, however deep, in text or between other bytes; it is named, not shown."""
    bench.do()
    deep = bench.folder / ".amends" / "deep" / "cache.bin"
    deep.parent.mkdir(parents=True)
    deep.write_bytes(b"\x00\xff" + SECRET.encode() + b"\x00")
    assert bench.canaries() == ["`.amends/deep/cache.bin` holds the secret `SHOP_WORD`"]
    assert SECRET not in str(bench.close())


def test_the_kit_counts_what_left(bench):
    """Calls and looks are told apart; a call that is repeated by the agent is none."""
    bench.do()
    bench.again()
    assert len(bench.writes()) == len(bench.watched.calls) == 1


def test_what_says_nothing_about_a_capability_ends_the_test(bench):
    """With the reason, which stands in the report."""
    with pytest.raises(NotTried, match="this line cannot make `html`"):
        bench.arm(Fault("html"))
    with pytest.raises(NotTried, match="nobody can"):
        bench.needs(None, "nobody can")


def test_an_adapter_that_is_not_loaded_fails_the_test(bench):
    """The bench says why, and does not go on without it."""
    bench._adapters = lambda address: {"ship": {}}
    with pytest.raises(AssertionError, match="no plugin `ship` is installed"):
        bench.do()
