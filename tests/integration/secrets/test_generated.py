"""Rule 10 for secrets that nobody thought of: generated ones, in generated places, in the form a system would write."""

import html
import json
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amends.core.errors import InvalidInput
from amends.core.redaction import MASK
from amends.spi.capability import Done, Refused
from amends.testing.worlds import World, keyed, ledger_faults

REFERENCE = "env:SHOP_TOKEN"
ECHOES = {
    "raw": str,
    "quoted": lambda s: quote(s, safe=""),
    "json": json.dumps,
    "html": html.escape,
    "hex": lambda s: s.encode().hex(),
}
PLACES = ("refusal", "error", "cause", "output", "effect", "reference", "reason", "argument", "key", "label", "run_key")

# Letters that are nowhere else in a ledger, in the middle of every secret: what remains of one is found by them.
CORE = "ӁӜӠ"
edges = st.text(st.sampled_from("aZ09 \"'%+\\/<&>{}\t\n\r=:@é💥"), max_size=6)
secret = st.builds(lambda a, b: f"{a}{CORE}{b}".strip(), edges, edges).filter(lambda s: len(s) >= 6)


def lived(value, place, how):
    """A world in which the secret turns up in one place; what its ledger holds, and what its caller was told."""
    world = World(keyed())
    world.secrets._values[REFERENCE] = value
    text = f"so {ECHOES[how](value)} it is"
    capability = world.capabilities[0]

    def do(call):
        known = call.secret(REFERENCE)
        assert known == value  # present where it is needed
        thing = world.system.make("shop.reserve", call)
        match place:
            case "refusal":
                world.system.remove(thing.reference)
                raise Refused(text, code="no")
            case "error":
                raise ConnectionResetError(text)
            case "cause":
                raise ConnectionResetError("lost") from ValueError(text)
            case "reference":
                return Done(effect={"id": thing.reference}, reference=text)
        told = {"output": {"said": [{text: text}]}} if place == "output" else {}
        effect = {"id": thing.reference, **({"note": text} if place == "effect" else {})}
        return Done(effect=effect, reference=thing.reference, **told)

    object.__setattr__(capability, "do", do)
    told = []
    try:
        world.secrets.resolve(REFERENCE)
        run = world.run(run_key=text if place == "run_key" else "1")
        args = {"name": text if place == "argument" else "o-1", **({text: 1} if place == "key" else {})}
        told.append(repr(run.call("shop.reserve", args, label=text if place == "label" else "")))
    except InvalidInput as error:
        told.append(str(error.as_dict()))
    else:
        run.fail(text if place == "reason" else "stop", wait_seconds=60)
        told.append(repr(run.outcome))
    faults = ledger_faults(world.journal)
    kept = [stored.event.payload for stored in world.journal.events_after(0)]
    kept += [row.body for kind in ("run", "action", "claim", "escalation") for row in world.journal.rows(kind)]
    world.close()
    return faults, kept, told


@settings(max_examples=max(40, settings.default.max_examples // 4))
@given(secret, st.sampled_from(PLACES), st.sampled_from(sorted(ECHOES)))
def test_no_place_and_no_form_lets_a_secret_through(value, place, how):
    """Whatever it is made of, wherever it turns up: nothing of it is kept or told, and the ledger is sound."""
    faults, kept, told = lived(value, place, how)
    assert faults == []
    wanted = {CORE, quote(CORE), json.dumps(CORE)[1:-1], CORE.encode().hex()}
    assert [text for text in (*kept, *told) if any(form in text for form in wanted)] == []


@pytest.mark.parametrize("place", PLACES)
def test_every_place_is_reached(place):
    """The control: a word that is no secret stands in the ledger or in what was told, for each of the places."""
    plain = lived(f"only {CORE}", place, "raw")[1:]
    assert "only" not in str(plain).replace("only the", "")
    if place in {"refusal", "error", "output", "effect", "reference", "reason"}:
        assert MASK in str(plain)


def test_of_two_secrets_the_longer_leaves_no_rest():
    """A tenant's token is the prefix of a user's: both are masked, and nothing of the longer one stays."""
    world = World(keyed())
    short, long = "tok-1234567", "tok-1234567-user-99"
    world.secrets._values.update({"env:A": short, "env:B": long})

    def do(call):
        raise Refused(f"{call.secret('env:A')}|{call.secret('env:B')}|{long[:-1]}", code="no")

    object.__setattr__(world.capabilities[0], "do", do)
    with world.run() as run:
        result = run.call("shop.reserve", {"name": "o-1"})
    assert result.error is not None
    assert result.error.message == f"{MASK}|{MASK}|{MASK}"
    world.close()
