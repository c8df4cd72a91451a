"""The house stays tidy: nothing left over, nothing of one machine, every plugin whole."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLUGINS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
LOCKS = sorted(ROOT.glob("engine/locks/*.lock"))

# Assembled from parts, so that this file does not find itself.
LEFTOVERS = ["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK", "<" * 7, ">" * 7]
HOMES = ["/ho" + "me/", "/Us" + "ers/", "/ro" + "ot/", "/wo" + "rk/"]


def tracked_texts():
    """Yield path and text of every text file that is, or may soon be, in the repository."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    for name in sorted(set(listed.decode().split("\0")) - {""}):
        try:
            yield name, (ROOT / name).read_text(encoding="utf-8")
        except (FileNotFoundError, IsADirectoryError, UnicodeDecodeError):
            continue


def hits(pattern):
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in tracked_texts()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def test_no_leftover_markers():
    """Work that is not done is an issue, not a marker in the sources."""
    words = "|".join(rf"\b{word}\b" if word.isalpha() else f"^{word}" for word in LEFTOVERS)
    assert hits(re.compile(words)) == []


def test_no_paths_of_one_machine():
    """What is checked in works on every machine, so it names no folder of anybody's."""
    assert hits(re.compile("|".join(rf"(?<![\w.$}}]){home}" for home in HOMES))) == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_lock_names_no_host_and_hashes_everything(lock):
    """The lock installs from any registry, and only what was locked."""
    text = lock.read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^\s*-", text.replace("    --hash=sha256:", ""), re.MULTILINE), "an option beside --hash"
    pins = re.split(r"\n(?=\S)", text.strip())
    assert pins
    assert [pin for pin in pins if not re.match(r"[a-z0-9.-]+==\S+", pin) or "--hash=sha256:" not in pin] == []


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
def test_plugin_is_whole(plugin):
    """Each plugin explains itself, tests itself and is typed."""
    package = plugin / "src" / f"amends_{plugin.name}"
    assert (plugin / "README.md").is_file()
    assert (plugin / "tests").is_dir()
    assert (package / "__init__.py").is_file()
    assert (package / "py.typed").is_file()
