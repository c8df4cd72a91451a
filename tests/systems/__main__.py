"""`python -m systems install pip|real | list | sweep | lock [--upgrade]`: what the Makefile calls."""

from __future__ import annotations

import argparse
import sys

from systems.catalog import BLOCKS, blocks
from systems.install import InstallFailed, install, is_installed
from systems.leases import sweep
from systems.locking import lock


def main() -> int:
    """Do one command; 0 if it worked."""
    parser = argparse.ArgumentParser(prog="python -m systems")
    commands = parser.add_subparsers(dest="command", required=True)
    wanted = commands.add_parser("install", help="sweep, then install what a tier needs")
    wanted.add_argument("tier", choices=["pip", "real"])
    commands.add_parser("list", help="the installed systems and their versions")
    commands.add_parser("sweep", help="end the systems whose test process is gone")
    pins = commands.add_parser("lock", help="pin the systems again")
    pins.add_argument("--upgrade", action="store_true")
    given = parser.parse_args()
    match given.command:
        case "install":
            _sweep()
            try:
                install(blocks(given.tier), lambda line: print(line, file=sys.stderr))
            except InstallFailed as failed:
                print(failed, file=sys.stderr)
                return 1
        case "list":
            for block in BLOCKS.values():
                version = block.version() if is_installed(block) else "not installed"
                print(f"{block.package:28} {version:14} {block.about}")
        case "sweep":
            _sweep()
        case _:
            lock(upgrade=given.upgrade)
    return 0


def _sweep() -> None:
    for name in sweep():
        print(f"ended {name}, which its tests left behind", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
