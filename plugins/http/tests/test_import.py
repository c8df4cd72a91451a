"""`amends contracts import`: drafts that say what they do not know, and are refused until a person has said it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from amends.core.registration import refusals
from amends.spi import ConfigError
from amends_http.declaration import Declaration
from amends_http.importing.cli import contracts
from amends_http.importing.toml_text import toml_text
from amends_http.loading import read_declaration

METADATA = {"type": "object", "additionalProperties": {"type": "string"}}
SLOT = {
    "type": "object",
    "required": ["order", "window"],
    "properties": {
        "id": {"type": "string", "readOnly": True},
        "metadata": METADATA,
        "order": {"type": "string", "description": "the order's\nnumber"},
        "window": {"type": "string", "enum": ["am", "pm"]},
        "doors": {"type": "integer", "minimum": 1},
        "before": {"type": "boolean"},
        "card-token": {"type": "string"},
    },
}
ANSWER = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Slot"}}}}
LIST = {"type": "object", "properties": {"data": {"type": "array", "items": {}}, "has_more": {"type": "boolean"}}}
SPEC: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Delivery Slots"},
    "components": {"schemas": {"Slot": SLOT}},
    "paths": {
        "/v1/slots": {
            "get": {"responses": {"200": {"content": {"application/json": {"schema": LIST}}}}},
            "post": {
                "operationId": "holdSlot",
                "summary": "Hold a delivery slot.",
                "parameters": [{"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}}],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Slot"}}}},
                "responses": {"201": ANSWER, "409": {"description": "taken"}},
            },
        },
        "/v1/slots/{slot}": {
            "parameters": [{"name": "slot", "in": "path", "required": True, "schema": {"type": "string"}}],
            "get": {"responses": {"200": ANSWER}},
            "delete": {"responses": {"204": {"description": "gone"}}},
            "put": {
                "requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": SLOT}}},
                "responses": {"200": ANSWER},
            },
        },
        "/v1/slots/{slot}/release": {
            "post": {
                "parameters": [{"name": "slot", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {"202": {"description": "later"}},
            }
        },
    },
}


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "slots.json"
    path.write_text(json.dumps(SPEC))
    return path


def run(*arguments: object) -> Any:
    return CliRunner().invoke(contracts, ["import", *map(str, arguments)], standalone_mode=False)


def test_every_operation_that_changes_something_is_drafted(spec, tmp_path):
    """Reads need no contract; names come from the document and do not clash."""
    assert run(spec, "--out", tmp_path / "c").exception is None
    names = sorted(path.stem for path in (tmp_path / "c").glob("*.toml"))
    assert names == ["delete_v1_slots", "hold_slot", "post_v1_slots_release", "put_v1_slots"]


def test_a_draft_says_what_the_document_says(spec, tmp_path):
    """Arguments, key, marker, proof and the ways to find the effect again are there."""
    out = tmp_path / "hold.toml"
    run(spec, "--out", out, "--only", "POST:/v1/slots")
    draft = tomllib.loads(out.read_text())
    assert (draft["name"], draft["summary"]) == ("hold_slot", "Hold a delivery slot")
    assert draft["keying"] == {"kind": "keyed", "parameter": "Idempotency-Key", "ttl_seconds": 86400}
    assert next(iter(draft["request"]["body"])) == "metadata"
    assert draft["request"]["success"]["where"] == {"metadata.amends_action": ["{marker}"]}
    assert draft["arguments"]["order"] == {"type": "text", "describe": "the order's number"}
    assert draft["arguments"]["window"]["choices"] == ["am", "pm"]
    assert draft["arguments"]["doors"] == {"type": "integer", "required": False, "minimum": 1}
    assert draft["arguments"]["card_token"]["type"] == "secret"
    assert draft["request"]["body"]["before"] == "{before_value}"
    assert "id" not in draft["arguments"]
    assert draft["find"]["by_id"]["path"] == "/v1/slots/{reference}"
    assert draft["find"]["by_list"]["match"] == {"metadata.amends_action": "{marker}"}
    assert draft["find"]["by_list"]["items"] == "data"


def test_the_way_back_is_blank_and_its_candidates_are_named(spec, tmp_path):
    """No inverse is guessed: what the document has beside it is only named."""
    run(spec, "--out", tmp_path / "c")
    blanks = tomllib.loads((tmp_path / "c" / "hold_slot.toml").read_text())["blanks"]
    assert {"compensation", "undo_cost", "readers", "identity", "find"} <= set(blanks)
    assert "DELETE /v1/slots/{slot}" in blanks["compensation"]
    assert "POST /v1/slots/{slot}/release" in blanks["compensation"]
    blanks = tomllib.loads((tmp_path / "c" / "put_v1_slots.toml").read_text())["blanks"]
    assert "image" in blanks
    blanks = tomllib.loads((tmp_path / "c" / "post_v1_slots_release.toml").read_text())["blanks"]
    assert "request.operation" in blanks
    assert "no candidate" in blanks["compensation"]


def test_a_draft_is_refused_and_each_blank_is_named(spec, tmp_path, adapter):
    """The adapter does not load: the error names file, every blank and what to write there."""
    run(spec, "--out", tmp_path / "hold.toml", "--only", "POST:/v1/slots")
    text = (tmp_path / "hold.toml").read_text()
    with pytest.raises(ConfigError, match=r"`hold\.toml` is a draft") as no:
        adapter(files={"hold.toml": text})
    for key, words in tomllib.loads(text)["blanks"].items():
        assert f"`{key}`: {words}" in no.value.message


def test_a_draft_without_its_list_is_refused_by_registration_all_the_same(spec, tmp_path):
    """Deleting the list instead of writing what it asks for makes no contract that may be registered."""
    run(spec, "--out", tmp_path / "c")
    for path in sorted((tmp_path / "c").glob("*.toml")):
        declared = read_declaration(path).model_copy(update={"blanks": {}})
        assert refusals(declared.contract("slots", {})), path.name


def test_a_completed_draft_is_registered(spec, tmp_path, adapter):
    """A person writes readers, states, paging and the way back: then it loads, and nothing is refused."""
    out = tmp_path / "hold.toml"
    run(spec, "--out", out, "--only", "POST:/v1/slots")
    document = tomllib.loads(out.read_text())
    del document["blanks"]
    document["readers"] = {"audience": "machine", "where": "the carrier's planning"}
    document["identity"] = {"fields": ["order"]}
    document["find"] |= {"present": {"status": ["held"]}, "gone": {"status": ["released"]}}
    document["find"]["by_list"] |= {"more": "has_more", "cursor": {"parameter": "starting_after", "item": "id"}}
    request = {"method": "DELETE", "path": "/v1/slots/{reference}", "answers": "any"}
    document["compensation"] = [{"name": "release", "request": request}]
    shelf = adapter(files={"hold.toml": toml_text(document)})
    assert refusals(shelf.capabilities["partner.hold_slot"].contract) == ()


def test_drafts_round_trip_through_the_loader(spec, tmp_path):
    """What was written is what is read, field by field."""
    run(spec, "--out", tmp_path / "c")
    for path in (tmp_path / "c").glob("*.toml"):
        document = tomllib.loads(path.read_text())
        assert tomllib.loads(toml_text(document)) == document
        assert Declaration.model_validate(document) == read_declaration(path)


def test_the_same_document_makes_the_same_bytes_and_writes_nothing_twice(spec, tmp_path):
    """Order in the document does not matter, and a second import changes no file."""
    run(spec, "--out", tmp_path / "a")
    turned = {**SPEC, "paths": dict(reversed(SPEC["paths"].items()))}
    (tmp_path / "turned.json").write_text(json.dumps(turned))
    run(tmp_path / "turned.json", "--out", tmp_path / "b")
    for path in (tmp_path / "a").glob("*.toml"):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    said = run(spec, "--out", tmp_path / "a")
    assert said.output.count("unchanged") == 4


def test_a_file_that_somebody_worked_on_is_not_written_over(spec, tmp_path):
    """Nothing at all is written; `--force` says otherwise."""
    out = tmp_path / "c"
    out.mkdir()
    (out / "hold_slot.toml").write_text("# mine")
    said = run(spec, "--out", out)
    assert isinstance(said.exception, ConfigError)
    assert "hold_slot.toml" in said.exception.message
    assert [path.name for path in out.iterdir()] == ["hold_slot.toml"]
    assert run(spec, "--out", out, "--force").exception is None
    assert "# mine" not in (out / "hold_slot.toml").read_text()


def test_what_the_document_is_silent_about_is_a_warning(spec, tmp_path):
    """No idempotency header, no error bodies, no word about conflicts."""
    said = run(spec, "--out", tmp_path / "c.toml", "--only", "delete:/v1/slots/{slot}")
    assert "no idempotency header" in said.stderr
    assert "how errors read" in said.stderr
    assert "409" in said.stderr


@pytest.mark.parametrize(
    ("document", "arguments", "says"),
    [
        ({"swagger": "2.0"}, (), "no OpenAPI 3"),
        ({"openapi": "3.1.0", "paths": {}}, (), "no operation"),
        (SPEC, ("--only", "POST:/v1/nothing"), "`POST:/v1/nothing`"),
        (SPEC, ("--out", "one.toml"), "one file"),
        ({"openapi": "3.1.0", "paths": {"/x": {"post": {"$ref": "#/a"}}}, "a": {"$ref": "#/a"}}, (), "leads to itself"),
        ({"openapi": "3.1.0", "paths": {"/x": {"post": {"$ref": "#/nowhere"}}}}, (), "not there"),
        ({"openapi": "3.1.0", "paths": {"/x": {"post": {"$ref": "other.json"}}}}, (), "another file"),
    ],
)
def test_bad_input_is_named_with_a_remedy(tmp_path, monkeypatch, document, arguments, says):
    """A wrong document, a wrong name, too many drafts for one file."""
    monkeypatch.chdir(tmp_path)
    Path("spec.json").write_text(json.dumps(document))
    said = run("spec.json", *arguments)
    assert isinstance(said.exception, ConfigError)
    assert says in said.exception.message
    assert said.exception.hint
    assert not Path("one.toml").exists()


def test_yaml_makes_the_same_drafts(spec, tmp_path):
    """Its statuses are numbers beside the word `default`, and its dates are no strings: neither is so in JSON."""
    document: Any = json.loads(json.dumps(SPEC))
    hold = document["paths"]["/v1/slots"]["post"]
    hold["responses"]["default"] = {"description": "else"}
    document["components"]["schemas"]["Slot"]["properties"]["day"] = {"type": "string", "enum": ["2026-01-01"]}
    spec.write_text(json.dumps(document))
    (tmp_path / "slots.yaml").write_text(
        yaml.safe_dump(document, sort_keys=False).replace("'201'", "201").replace("'2026-01-01'", "2026-01-01")
    )
    assert yaml.safe_load((tmp_path / "slots.yaml").read_text()) != document
    for name in ("json", "yaml"):
        said = run(tmp_path / f"slots.{name}", "--out", tmp_path / name)
        assert said.exception is None
    made = {name: [path.read_text() for path in sorted((tmp_path / name).glob("*.toml"))] for name in ("json", "yaml")}
    assert made["json"] == [text.replace("slots.yaml", "slots.json") for text in made["yaml"]]
    assert made["json"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("openapi: 3.0.0\npaths: &a [*a]\n", "values"),
        ("openapi: 3.0.0\n? [a, b]\n: c\n", "not YAML"),
        ("openapi: [", "not YAML"),
    ],
)
def test_yaml_that_is_no_document_is_named(tmp_path, text, says):
    """A value within itself, a list as a key, half a line."""
    (tmp_path / "spec.yaml").write_text(text)
    said = run(tmp_path / "spec.yaml")
    assert isinstance(said.exception, ConfigError)
    assert says in said.exception.message


def test_a_document_that_is_not_json_is_named(tmp_path):
    """Neither JSON nor named as YAML."""
    (tmp_path / "spec.json").write_text("openapi: 3.0.0")
    said = run(tmp_path / "spec.json")
    assert isinstance(said.exception, ConfigError)
    assert "not JSON" in said.exception.message
