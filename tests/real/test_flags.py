"""The flags adapter on Unleash itself: what it relies on, the life of each effect, and the whole fault matrix."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from systems import Unleash
from systems.matrices.flags import FlagServer, UnleashMatrix
from systems.matrices.people import maya_is_told
from systems.suites import unleash as relied_on
from systems.suites import unleash_adapter as lives


def test_the_server_does_what_the_suite_says_of_it(unleash):
    """Every behaviour that the adapter relies on, asked of the product."""
    assert relied_on.problems("unleash", unleash.url, unleash.admin_token) == []


def test_every_effect_is_made_found_and_taken_back(unleash):
    """Through the adapter: the product shows afterwards what it showed before."""
    assert lives.problems("unleash", unleash.url, unleash.admin_token) == []


class TestUnleash(UnleashMatrix):
    """Over the product with a line in between; other people use it with the same token."""

    running: ClassVar[Unleash]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _the_server(cls, unleash: Unleash) -> None:
        cls.running = unleash

    @contextmanager
    def system(self, folder: Path) -> Iterator[FlagServer]:
        del folder
        token = self.running.admin_token
        with maya_is_told() as told:
            yield FlagServer(
                url=self.running.url, token=token, theirs=token, environment=self.running.environment, person=told
            )
