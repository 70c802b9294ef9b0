"""Synthetic traces from the options of `adapt ingest`: which of them a generator takes, and what they say."""

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from adapt.core.errors import UsageError
from adapt.core.units.amounts import seconds_of

if TYPE_CHECKING:
    from adapt.core.synthetic.variation import Variation

OF_VARIATION = (
    *("diurnal", "day", "bursts", "burst_every", "burst_for", "streams", "lag"),
    *("drift", "drift_share", "key_life", "cost", "bytes_"),
)
"""Parameters that make a `Variation`."""


def check_taken(generator: Any, name: str, typed: Mapping[str, str]) -> None:
    """Refuse options that a generator does not take.

    Args:
        generator: What makes the trace.
        name: What it is called.
        typed: The options that were typed, by their parameter.

    Raises:
        UsageError: there is one.
    """
    taken = inspect.signature(generator).parameters
    for parameter, option in typed.items():
        known = {"rate": "rate_per_s"}.get(parameter, parameter)
        if known not in taken and not ("variation" in taken and parameter in OF_VARIATION):
            raise UsageError(f"--generate {name} takes no {option}; leave it out")


def taken_of(generator: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that a generator takes, of those that there are."""
    taken = inspect.signature(generator).parameters
    return {name: value for name, value in values.items() if name in taken}


def variation_of(options: Mapping[str, Any], typed: Mapping[str, str]) -> "Variation":
    """What varies in a synthetic stream, from the options of `OF_VARIATION`.

    Raises:
        UsageError: one is out of its range, or stands without that which it belongs to.
    """
    from adapt.core.synthetic.distribution import Distribution
    from adapt.core.synthetic.popularity import Drift, KeyLife
    from adapt.core.synthetic.rates import Bursts, Diurnal, Lags
    from adapt.core.synthetic.variation import Variation

    belongs = (("day", "diurnal"), ("burst_every", "bursts"), ("burst_for", "bursts"), ("drift_share", "drift"))
    for parameter, to in belongs:
        if parameter in typed and to not in typed:
            raise UsageError(f"{typed[parameter]} goes with --{to.replace('_', '-')}, which was not given")
    bursts = (options["bursts"], seconds_of(options["burst_every"]), seconds_of(options["burst_for"]))
    return Variation(
        Diurnal(options["diurnal"], seconds_of(options["day"])) if "diurnal" in typed else None,
        Bursts(*bursts) if "bursts" in typed else None,
        Lags(options["streams"], seconds_of(options["lag"])),
        Drift(seconds_of(options["drift"]), options["drift_share"]) if "drift" in typed else None,
        KeyLife(seconds_of(options["key_life"])) if "key_life" in typed else None,
        Distribution.parse("--cost", options["cost"]) if options["cost"] else None,
        Distribution.parse("--bytes", options["bytes_"]) if options["bytes_"] else None,
    )
