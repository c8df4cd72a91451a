"""Settings for every test: the Hypothesis profiles.

`HYPOTHESIS_PROFILE=dev|ci|thorough` chooses one; without it, CI takes `ci` and everybody else `dev`.
"""

import os

from hypothesis import HealthCheck, settings

# Deadlines are off everywhere: a busy machine is no failure, and pytest's time-out catches what hangs.
settings.register_profile("dev", max_examples=100, deadline=None)
settings.register_profile(
    "ci",
    derandomize=True,  # the same commit always meets the same examples
    max_examples=200,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough",
    max_examples=5_000,
    stateful_step_count=200,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))
