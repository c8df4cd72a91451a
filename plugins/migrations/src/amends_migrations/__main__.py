"""Starts the runner: `python -m amends_migrations`."""

from __future__ import annotations

import gc


def main() -> None:
    """Load everything, and serve one request."""
    gc.disable()  # an eighth of the start: nothing of what is being loaded is garbage
    from amends_migrations import runner  # noqa: PLC0415 - see above

    gc.freeze()
    gc.enable()
    runner.main()


if __name__ == "__main__":
    main()
