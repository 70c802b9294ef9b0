"""Credentials on their way to Spark tasks: variables, never arguments."""

import os
import sys
from collections.abc import Mapping

NAMES = ("AWS_", "AZURE_", "GOOGLE_")
"""Beginnings of the names of variables by which stores are reached."""


def environment_of_stores() -> dict[str, str]:
    """Variables by which this process reaches stores.

    Empty if it has used no store.
    """
    if "adapt.traces.locations.clients" not in sys.modules:
        return {}
    return {name: value for name, value in os.environ.items() if name.startswith(NAMES)}


def take_environment(given: Mapping[str, str]) -> None:
    """Reach stores as the driver does, in the process of a task."""
    if any(os.environ.get(name) != value for name, value in given.items()):
        from adapt.traces.locations.clients import client_of

        os.environ.update(given)
        client_of.cache_clear()
