"""`amends.toml`: every wrong key is named with its remedy, and the document describes every key."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from amends import config
from amends.core.errors import ConfigError

ROOT = Path(__file__).parents[3]
PROJECT = {"tenant": "acme", "environment": "staging"}


def wrong(data, path=Path("amends.toml")):
    with pytest.raises(ConfigError) as refused:
        config.parse(data, path)
    return {one["key"]: one for one in refused.value.data["keys"]}


def test_two_keys_are_enough():
    """Tenant and environment; everything else has a default."""
    settings = config.parse({"project": PROJECT}, Path("there/amends.toml"))
    assert settings.folder == Path("there/.amends").resolve()
    assert settings.storage.mirror is True


def test_adapters_take_the_plugins_options():
    """Keys the engine does not know are the plugin's, whole."""
    settings = config.parse(
        {"project": PROJECT, "adapters": {"git": {"repositories": {"x": {"remote": "y"}}, "instance": "eu"}}},
        Path("amends.toml"),
    )
    assert settings.adapters["git"].options == {"repositories": {"x": {"remote": "y"}}}
    assert settings.adapters["git"].instance == "eu"


@pytest.mark.parametrize(
    ("data", "key", "message", "remedy"),
    [
        ({}, "project", "missing", "add [project]"),
        ({"project": {"tenant": "a"}}, "project.environment", "missing", "add `environment` to [project]"),
        ({"project": PROJECT | {"ownr": "x"}}, "project.ownr", "no such key", "did you mean `owner`?"),
        ({"project": PROJECT, "polices": {}}, "polices", "no such key", "did you mean `policies`?"),
        ({"project": PROJECT, "x": 1}, "x", "no such key", "the keys here are adapters"),
        ({"project": PROJECT, "base": "x"}, "base", "no such key", "the keys here are"),
        ({"project": PROJECT, "engine": {"lease_seconds": 0}}, "engine.lease_seconds", "greater than 0", "`0`"),
        ({"project": PROJECT, "engine": {"max_parallel_calls": "many"}}, "engine.max_parallel_calls", "", "`many`"),
        ({"project": PROJECT, "people": {"maya": {"tier": 9}}}, "people.maya.tier", "less than or equal to 3", "`9`"),
        ({"project": PROJECT, "checks": {"ci": {}}}, "checks.ci.command", "missing", "[checks.ci]"),
        ({"project": PROJECT, "checks": {"ci": {"comand": ["x"]}}}, "checks.ci.comand", "no such key", "`command`"),
        (
            {"project": PROJECT, "notifiers": {"p": {"kind": "fax"}}},
            "notifiers.p.kind",
            "'command' or 'webhook'",
            "`fax`",
        ),
        ({"project": PROJECT, "notifiers": {"p": {"kind": "webhook"}}}, "notifiers.p", "needs the key `url`", "add it"),
        ({"project": PROJECT, "notifiers": {"p": {"kind": "command"}}}, "notifiers.p", "key `command`", "add it"),
        (
            {"project": PROJECT, "adapters": {"git": {"sandbox": {"plugin": "x"}}}},
            "adapters.git.sandbox",
            "no `plugin` of its own",
            "remove it",
        ),
        ({"project": PROJECT, "adapters": {"git": {"sandbox": True}}}, "adapters.git.sandbox", "", "`True`"),
        (
            {"project": PROJECT, "adapters": {"git": {"sandbox": {"environment": ""}}}},
            "adapters.git.sandbox.environment",
            "at least 1 character",
            "change it",
        ),
    ],
)
def test_a_wrong_key_is_named_with_what_is_wrong_and_the_remedy(data, key, message, remedy):
    """File, key, remedy: nobody has to guess."""
    found = wrong(data)
    assert message in found[key]["message"]
    assert remedy in found[key]["remedy"]


def test_all_wrong_keys_are_listed_at_once():
    """One run of the command shows everything there is to correct."""
    data = {"project": {"tenant": "", "environment": "x"}, "engine": {"skew_seconds": -1}, "storage": {"foldr": "x"}}
    assert set(wrong(data)) == {"project.tenant", "engine.skew_seconds", "storage.foldr"}


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"[project", "not valid TOML"), (b"\xff", "not UTF-8 at byte 0"), (None, "does not exist")],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path, content, said):
    """The message names the file, the hint what to do."""
    path = tmp_path / "amends.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=said) as refused:
        config.load(path)
    assert str(path) in refused.value.message
    assert refused.value.hint


# --- the document --------------------------------------------------------------------------------------------

SECTIONS = {
    "project": config.ProjectSettings,
    "storage": config.StorageSettings,
    "engine": config.EngineSettings,
    "policies": config.PolicySettings,
    "people.<name>": config.PersonSettings,
    "agents.<name>": config.AgentSettings,
    "checks.<name>": config.CheckSettings,
    "notifiers.<name>": config.NotifierSettings,
    "adapters.<name>": config.AdapterSettings,
    "adapters.<name>.sandbox": config.SandboxSettings,
}
ROW = re.compile(r"^\| `(?P<key>\w+)` \| (?P<default>[^|]*) \|", re.MULTILINE)


def documented():
    """Section -> key -> what the document gives as its default."""
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    parts = re.split(r"^## `\[(.+?)\]`.*$", text, flags=re.MULTILINE)[1:]
    return {
        name: {row["key"]: row["default"].strip() for row in ROW.finditer(body)}
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


def default_of(model: type[BaseModel], key):
    field = model.model_fields[key]
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value in ("", (), None):
        return "–"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def test_the_document_has_every_section_and_no_other():
    """A section that is not documented does not exist for its reader."""
    assert set(documented()) == set(SECTIONS)
    assert {name.split(".")[0] for name in SECTIONS} == set(config.Settings.model_fields) - {"base"}


@pytest.mark.parametrize("section", SECTIONS)
def test_the_document_has_every_key_with_its_default_and_no_other(section):
    """Keys and defaults of the document are those of the model, both ways."""
    model = SECTIONS[section]
    assert documented()[section] == {key: default_of(model, key) for key in model.model_fields}


@pytest.mark.parametrize("cut", range(20, 60))
def test_no_cut_leaves_a_part_of_a_secret_in_a_wrong_value(cut):
    """A value is masked first and shortened then: a password is known by the `@` behind it, which a cut takes away."""
    value = "x" * (cut - 13) + " https://u:" + "canary" * 5 + "@git.test/"
    (found,) = wrong({"project": PROJECT, "engine": {"skew_seconds": value}}).values()
    assert "xxx" in found["remedy"]
    assert "cana" not in str(found)
