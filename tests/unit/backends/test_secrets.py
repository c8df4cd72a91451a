"""A secret is a reference until it is sent."""

import pytest

from amends.backends.secrets import ReferencedSecrets
from amends.core.errors import ConfigError


@pytest.fixture
def secrets(tmp_path):
    return ReferencedSecrets(tmp_path, {"TOKEN": "t0p-secret", "EMPTY": ""})


def test_an_environment_reference_gives_the_variable(secrets):
    """`env:NAME` stands for the variable's value."""
    assert secrets.resolve("env:TOKEN") == "t0p-secret"


def test_a_file_reference_gives_the_content_without_its_line_end(secrets, tmp_path):
    """`file:PATH` stands for the content; editors add a line end that is no part of a secret."""
    (tmp_path / "token").write_text("from-file\r\n")
    assert secrets.resolve("file:token") == "from-file"
    assert secrets.resolve(f"file:{tmp_path / 'token'}") == "from-file"


def test_a_rotated_secret_is_seen_at_the_next_use(secrets, tmp_path):
    """Nothing is cached: the value sent is the value now, and both are redacted."""
    (tmp_path / "token").write_text("the-old-one")
    secrets.resolve("file:token")
    (tmp_path / "token").write_text("the-new-one")
    assert secrets.resolve("file:token") == "the-new-one"
    assert secrets.revealed() == {"the-old-one", "the-new-one"}


def test_only_what_was_resolved_is_revealed(secrets):
    """Redaction knows every value that was handed out, and no other."""
    assert secrets.revealed() == frozenset()
    secrets.resolve("env:TOKEN")
    assert secrets.revealed() == {"t0p-secret"}


def test_what_the_settings_refer_to_is_known_before_anybody_asks(tmp_path):
    """An agent that holds a secret already may put it into its first call; one that is not there is no error yet."""
    secrets = ReferencedSecrets(tmp_path, {"TOKEN": "t0p-secret"}, known=["env:TOKEN", "env:MISSING"])
    assert secrets.revealed() == {"t0p-secret"}


@pytest.mark.parametrize(
    "reference", ["env:MISSING", "env:EMPTY", "file:missing", "file:binary", "file:empty", "file:huge"]
)
def test_an_unusable_secret_is_named_by_its_reference(secrets, tmp_path, reference):
    """The error says which reference, and what to do about it."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe\xfa")
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "huge").write_text("x" * 100_000)
    with pytest.raises(ConfigError) as caught:
        secrets.resolve(reference)
    assert f"`{reference}`" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("reference", ["t0p-secret-itself", "vault:x", "env:", ""])
def test_what_is_no_reference_is_refused_without_being_shown(secrets, reference):
    """A secret pasted where its reference belongs does not end up in a log."""
    with pytest.raises(ConfigError) as caught:
        secrets.resolve(reference)
    assert not reference or reference not in str(caught.value).replace("env:NAME", "")


@pytest.mark.parametrize(
    "value",
    ["Zq7x!", "authoritative", "author", "lease_until_us", "postgresql://app:holder@db.test/billing"],
    ids=["short", "a word of the ledger", "a part of one", "the name of a field", "a password that is one"],
)
def test_a_secret_that_could_not_be_masked_is_refused(tmp_path, value):
    """Rule 10: five letters would be left as they are, and a masked `authoritative` would make outcomes unwritable
    after they happened. So nothing is sent with such a secret; the error names the reference alone.
    """
    secrets = ReferencedSecrets(tmp_path, {"TOKEN": value}, known=["env:TOKEN"])
    with pytest.raises(ConfigError) as caught:
        secrets.resolve("env:TOKEN")
    assert "`env:TOKEN`" in caught.value.message
    assert "longer" in caught.value.hint
    assert value not in str(caught.value.as_dict())
    assert secrets.revealed() == frozenset()
