"""CI of the billing project: clones the pushed commit from the remote and runs the clone's own tests.

    python ci.py REMOTE BRANCH SEEN

Exit status 0: they passed; 1: they did not; 2: there was nothing to test. While it runs, the file SEEN holds its
process id and the commit, which is how anybody outside can tell that CI is at work.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path


def main(remote: str, branch: str, seen: str) -> int:
    """Clone, test, say which."""
    remote = str(Path(remote).resolve())
    with tempfile.TemporaryDirectory(prefix="ci-") as folder:
        clone = Path(folder) / "clone"
        made = run(["git", "clone", "--quiet", "--depth", "1", "--branch", branch, f"file://{remote}", str(clone)])
        if made.returncode:
            print(f"{branch} cannot be cloned")
            return 2
        commit = run(["git", "rev-parse", "HEAD"], clone).stdout.strip()
        Path(seen).write_text(f"{os.getpid()} {commit}")
        tests = [sys.executable, "-m", "unittest", "discover", "-s", "tests", "-t", "."]
        passed = run(tests, clone).returncode == 0
        print(f"{branch} at {commit[:12]} is {'green' if passed else 'red'}")
        return 0 if passed else 1


def run(argv: list[str], folder: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """One command to its end; what it says on its way is printed before what we say."""
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    print(done.stderr, end="")
    return done


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
