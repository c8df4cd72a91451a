"""Files that people and agents write: whatever stands in them, the answer is ours, soon, and nothing is done."""

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amends import Engine, config
from amends.backends.cedar.authorizer import CedarAuthorizer
from amends.backends.cedar.testfile import parse as parse_tests
from amends.core.errors import ConfigError, InvalidInput
from amends.testing.contracts import reversible
from amends.testing.crash.project import write_project
from amends.testing.loopback import LoopbackSystem
from amends.testing.scenarios import loading
from amends_http.importing.drafting import drafts
from amends_http.importing.openapi import read_document
from amends_http.loading import load_declarations

ROOT = Path(__file__).parents[3]
ALLOWED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
FEW = settings(max_examples=max(30, settings.default.max_examples // 3), suppress_health_check=ALLOWED)
MANY = settings(suppress_health_check=ALLOWED)

CONFIG = (
    (ROOT / "scenarios" / "billing-field" / "amends.toml")
    .read_text(encoding="utf-8")
    .replace("${values.flag_seconds}", "8")
)
SCENARIO = (ROOT / "scenarios" / "billing-field" / "scenario.toml").read_text(encoding="utf-8")
CONTRACT = (ROOT / "scenarios" / "billing-field" / "contracts" / "notify_sandbox.toml").read_text(encoding="utf-8")
POLICY = """@id("site-1")
@reason("no deletions on Fridays")
forbid (principal, action == Shop::Action::"shop.reserve", resource)
when { context.time.windows.contains("write_freeze") && !(context has approval) };
"""
MANIFEST = 'label = "1.0.0"\ndescription = "ours"\nswitch_off = []\n'
WINDOWS = (
    '[[window]]\nname = "write_freeze"\ntime_zone = "Europe/Berlin"\ndays = ["fri"]\nfrom = "09:00"\nuntil = "17:00"\n'
)
TESTS = {"tests": [{"name": "t", "given": {"fixture": "undo", "overrides": {}}, "expect": {"outcome": "deny"}}]}
THING_REF = {"$ref": "#/components/schemas/Thing"}
SPEC = {
    "openapi": "3.0.3",
    "info": {"title": "Shop"},
    "paths": {
        "/v1/things/{id}": {
            "parameters": [{"name": "id", "in": "path", "schema": {"type": "string"}}],
            "post": {
                "operationId": "make",
                "requestBody": {"content": {"application/json": {"schema": THING_REF}}},
                "responses": {"201": {"content": {"application/json": {"schema": THING_REF}}}},
            },
        }
    },
    "components": {
        "schemas": {
            "Thing": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "parts": {"type": "array", "items": THING_REF}},
                "allOf": [{"properties": {"size": {"type": "integer"}}}],
            }
        }
    },
}


# --- amends.toml ----------------------------------------------------------------------------------------------


def test_settings_of_any_text(tally, mutated, tmp_path):
    """Edited files: settings that hold, or one error that names the file."""
    path = tmp_path / "amends.toml"

    @MANY
    @given(mutated(CONFIG))
    def fuzz(text):
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        tally.read(config.load, path)

    tally.read(config.load, _written(path, CONFIG))
    fuzz()


def test_settings_of_any_bytes(tally, tmp_path):
    """Not even text."""
    path = tmp_path / "amends.toml"

    @FEW
    @given(st.binary(max_size=200))
    def fuzz(data):
        path.write_bytes(data)
        tally.read(config.load, path)

    tally.read(config.load, _written(path, CONFIG))
    fuzz()


def test_settings_of_any_tree(tally, graft, tmp_path):
    """TOML that parses, with a wrong tree somewhere: every wrong key is named, and what is accepted can be used."""
    sound = tomllib.loads(CONFIG)

    @MANY
    @given(graft(sound))
    def fuzz(tree):
        if isinstance(tree, dict):
            found = tally.read(config.parse, tree, tmp_path / "amends.toml")
            if found is not None:
                assert found.engine.lease_seconds < float("inf")

    tally.read(config.parse, sound, tmp_path / "amends.toml")
    fuzz()


@pytest.mark.parametrize("value", ["inf", "nan", "1e300", "-1", "1e11"])
@pytest.mark.parametrize("key", ["lease_seconds", "skew_seconds", "page_every_seconds", "drill_valid_days"])
def test_times_that_no_clock_can_hold_are_refused(tmp_path, key, value):
    """An infinite lease ended the engine at its first run, with an overflow."""
    text = f'[project]\ntenant = "a"\nenvironment = "b"\n[engine]\n{key} = {value}\n'
    with pytest.raises(ConfigError, match=key):
        config.load(_written(tmp_path / "amends.toml", text))


def test_a_folder_and_an_unreadable_file_are_no_settings(tmp_path):
    """The error names the path, and is ours."""
    (tmp_path / "amends.toml").mkdir()
    with pytest.raises(ConfigError, match=r"amends\.toml"):
        config.load(tmp_path / "amends.toml")


# --- contracts ------------------------------------------------------------------------------------------------


def test_contract_files_of_any_text(tally, mutated, tmp_path):
    """The http adapter's contract files."""
    path = tmp_path / "notify_sandbox.toml"

    @MANY
    @given(mutated(CONTRACT))
    def fuzz(text):
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        tally.read(load_declarations, tmp_path)

    tally.read(load_declarations, _written(path, CONTRACT).parent)
    fuzz()


def test_a_bad_contract_file_leaves_its_adapter_out_and_sends_nothing(mutated, tmp_path):
    """The whole engine opens, without that adapter or with a sound one, and no request is made for it."""
    with LoopbackSystem.start("partner") as partner:
        project = write_project(tmp_path / "project", partner=partner.url, slack="http://127.0.0.1:9")
        path = project / "contracts" / "reserve_inventory.toml"
        sound = path.read_text(encoding="utf-8")
        left_out = []

        @settings(max_examples=10, suppress_health_check=ALLOWED)
        @given(mutated(sound))
        def fuzz(text):
            path.write_text(text, encoding="utf-8", errors="surrogatepass")
            with Engine.open(project, mirror=False) as engine:
                left_out.append("partner" not in {adapter.name for adapter in engine.plugins.adapters})

        fuzz()
        assert any(left_out)
        assert partner.requests() == []


def test_openapi_documents_of_any_tree(tally, graft, tmp_path):
    """References to nowhere and round in a circle, wrong types anywhere: drafts, or an error."""
    path = tmp_path / "spec.json"

    def drafted():
        return drafts(read_document(path))

    @MANY
    @given(graft(SPEC))
    def fuzz(tree):
        path.write_text(json.dumps(tree), encoding="utf-8")
        tally.read(drafted)

    _written(path, json.dumps(SPEC))
    assert tally.read(drafted)
    fuzz()


def test_openapi_documents_of_any_text(tally, mutated, tmp_path):
    """Broken JSON, deep JSON, and JSON that is something else."""
    path = tmp_path / "spec.json"

    @FEW
    @given(mutated(json.dumps(SPEC)))
    def fuzz(text):
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        tally.read(lambda: drafts(read_document(path)))

    tally.read(lambda: drafts(read_document(_written(path, json.dumps(SPEC)))))
    fuzz()


@pytest.mark.parametrize("place", ["paths", "info"])
def test_a_bomb_of_aliases_is_refused_soon(tmp_path, place):
    """Nine lines of YAML that stand for a billion values: an error of ours."""
    lines = ["openapi: 3.0.0", "a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    lines += ["info: {title: *a9}" if place == "info" else "paths: *a9"]
    spec = _written(tmp_path / "spec.yaml", "\n".join(lines) + "\n")
    with pytest.raises(ConfigError, match="aliases written out"):
        read_document(spec)


def test_a_document_that_refers_to_itself_everywhere_is_read(tmp_path):
    """A schema within itself is common, a reference to itself is a mistake."""
    spec = _written(tmp_path / "spec.json", json.dumps(SPEC))
    assert len(drafts(read_document(spec))) == 1
    spec = json.loads(json.dumps(SPEC))
    spec["components"]["schemas"]["Thing"] = THING_REF
    path = _written(tmp_path / "spec.json", json.dumps(spec))
    with pytest.raises(ConfigError, match="itself"):
        drafts(read_document(path))


# --- scenarios ------------------------------------------------------------------------------------------------


def test_scenario_files_of_any_text(tally, mutated, tmp_path):
    """Listed and loaded."""
    folder = tmp_path / "billing-field"
    folder.mkdir()
    path = folder / "scenario.toml"

    @MANY
    @given(mutated(SCENARIO))
    def fuzz(text):
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        tally.read(loading.list_scenarios, tmp_path)
        tally.read(loading.load_scenario, tmp_path, "billing-field")

    _written(path, SCENARIO)
    assert tally.read(loading.load_scenario, tmp_path, "billing-field")
    fuzz()


def test_scenario_files_of_any_tree(tally, graft, tmp_path):
    """TOML that parses, with a wrong tree somewhere: also in variants and in what it extends."""
    sound = {**tomllib.loads(SCENARIO), "variants": {"": {"title": "x"}, "slow": {"values": {"flag_seconds": 1}}}}
    path = tmp_path / "billing-field" / "scenario.toml"

    @MANY
    @given(graft(sound), st.sampled_from(("", "slow")))
    def fuzz(tree, variant):
        if isinstance(tree, dict):
            tally.read(loading.parse_scenario, tree, path, variant)

    tally.read(loading.parse_scenario, sound, path, "slow")
    fuzz()


# --- policies -------------------------------------------------------------------------------------------------


@pytest.fixture
def policies(tmp_path):
    """Load an authorizer over a bundle with these files."""
    folder = tmp_path / "policies"
    folder.mkdir()

    def load(**files):
        for name, text in {"bundle.toml": MANIFEST, "site.cedar": POLICY, **files}.items():
            (folder / name).write_text(text, encoding="utf-8", errors="surrogatepass")
        return CedarAuthorizer.load(
            contracts=[reversible("shop.reserve")], contributions={}, known_labels={}, site_bundle=folder
        )

    return load


def test_policies_of_any_text(tally, mutated, policies):
    """Deep, endless, not UTF-8, half a policy: refused before a parser that would end the process sees it."""

    @FEW
    @given(mutated(POLICY))
    def fuzz(text):
        tally.read(lambda: policies(**{"site.cedar": text}))

    assert tally.read(policies)
    fuzz()


def test_manifests_and_windows_of_any_text(tally, mutated, policies):
    """The bundle's own TOML."""

    @FEW
    @given(mutated(MANIFEST), mutated(WINDOWS), st.booleans())
    def fuzz(manifest, windows, which):
        tally.read(lambda: policies(**({"bundle.toml": manifest} if which else {"windows.toml": windows})))

    tally.read(lambda: policies(**{"windows.toml": WINDOWS}))
    fuzz()


def test_policy_tests_of_any_tree(graft):
    """Test files raise nothing but `ValueError`, which every reader of them tells as a finding."""
    counts = {"read": 0, "refused": 0}

    @MANY
    @given(graft(TESTS))
    def fuzz(tree):
        try:
            parse_tests(json.dumps(tree))
        except ValueError:
            counts["refused"] += 1
        else:
            counts["read"] += 1

    parse_tests(json.dumps(TESTS))
    fuzz()
    assert counts["read"] > 0
    assert counts["refused"] > 0
    with pytest.raises(ValueError, match="nests"):
        parse_tests("[" * 100_000)


def _written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_the_readers_underneath_do_fail_on_these():
    """The control: a plain TOML or JSON reader ends in an exception that nobody expects, or takes what is no value."""
    with pytest.raises(RecursionError):
        tomllib.loads("a = " + "[" * 5000)
    with pytest.raises(RecursionError):
        json.loads("[" * 100_000)
    assert json.loads('{"id": 1, "id": 2}') == {"id": 2}
    with pytest.raises(ValueError, match="digits"):
        str(tomllib.loads("a = 0x" + "f" * 4000)["a"])
    assert InvalidInput.code == "invalid_input"
