"""All findings of a trace: each rule is a pure function of the evidence."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from adapt.core.lint import of_keys, of_times
from adapt.core.lint.evidence import LINT, Evidence
from adapt.core.lint.finding import Finding, worst_first

RULES: Mapping[str, Callable[[Evidence], Finding | None]] = {
    "few-keys": of_keys.few_keys,
    "default-key": of_keys.default_key,
    "key-sample": of_keys.key_sample,
    "outlier-dates": of_times.outlier_dates,
    "minute-of-hour": of_times.minute_of_hour,
    "clocks": of_times.clocks,
    "granularity": of_times.granularity,
    "source-order": of_times.source_order,
    "key-blocks": of_keys.key_blocks,
    "bytes-skew": partial(of_keys.skewed_amount, "bytes"),
    "cost-skew": partial(of_keys.skewed_amount, "cost"),
    "drift": of_keys.drift,
    "turnover": of_keys.turnover,
    "few-rows": of_times.few_rows,
    "short-span": of_times.short_span,
}
"""By the id of what they find; findings of one severity are told in this order."""


def judged(profile: Mapping[str, Any]) -> list[Finding] | None:
    """The findings of a trace by its profile, worst first; None if the profile is of a time before the lint."""
    lint = profile.get(LINT)
    if lint is None or not profile.get("rows"):
        return None
    seen = Evidence(profile, lint)
    return worst_first([finding for rule in RULES.values() if (finding := rule(seen)) is not None])
