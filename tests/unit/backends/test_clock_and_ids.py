"""Ids are UUIDv7 and only grow; the clock is the machine's."""

import threading
from uuid import RFC_4122, UUID

from amends.backends.clock import SystemClock
from amends.backends.ids import UuidV7
from amends.testing.fakes import SimClock


def milliseconds(text):
    return UUID(text).int >> 80


def test_an_id_is_a_version_7_uuid_that_tells_its_time():
    """Anybody's UUID library reads version, variant and milliseconds."""
    clock = SimClock()
    made = UUID(UuidV7(clock).new())
    assert (made.version, made.variant) == (7, RFC_4122)
    assert made.int >> 80 == clock.now_us() // 1000


def test_ids_of_one_instant_grow():
    """Within a millisecond the order of making is the order of sorting."""
    ids = UuidV7(SimClock())
    made = [ids.new() for _ in range(10_000)]
    assert made == sorted(set(made))


def test_ids_grow_when_the_wall_clock_goes_backwards():
    """Keys sort by registration even after somebody sets the clock back."""
    clock = SimClock()
    ids = UuidV7(clock)
    before = ids.new()
    clock.jump_to(clock.now_us() - 3_600_000_000)
    after = ids.new()
    assert after > before
    clock.advance(7200)
    later = ids.new()
    assert later > after
    assert milliseconds(later) == clock.now_us() // 1000


def test_threads_never_share_an_id():
    """Eight threads at once get distinct ids, and each sees its own grow."""
    ids = UuidV7(SystemClock())
    made = [[] for _ in range(8)]

    def work(mine):
        mine.extend(ids.new() for _ in range(2000))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one for mine in made for one in mine}) == 8 * 2000
    assert all(mine == sorted(mine) for mine in made)


def test_the_real_clock_keeps_its_units():
    """Wall time is in microseconds, monotonic time in seconds, and sleeping lets both pass."""
    clock = SystemClock()
    wall, steady = clock.now_us(), clock.monotonic()
    clock.sleep(0.01)
    assert clock.now_us() > 1_600_000_000_000_000
    assert clock.now_us() >= wall
    assert clock.monotonic() - steady >= 0.009
