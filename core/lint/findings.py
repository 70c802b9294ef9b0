"""All findings of a trace: each rule is a pure function of the evidence."""

from collections.abc import Callable, Mapping
from typing import Any

from adapt.core.lint.evidence import LINT, Evidence
from adapt.core.lint.finding import Finding, worst_first
from adapt.core.lint.of_keys import (
    bytes_skew,
    cost_skew,
    default_key,
    drift,
    few_keys,
    key_blocks,
    key_sample,
    turnover,
)
from adapt.core.lint.of_times import (
    clocks,
    few_rows,
    granularity,
    minute_of_hour,
    outlier_dates,
    short_span,
    source_order,
)

RULES: Mapping[str, Callable[[Evidence], Finding | None]] = {
    "few-keys": few_keys,
    "default-key": default_key,
    "key-sample": key_sample,
    "outlier-dates": outlier_dates,
    "minute-of-hour": minute_of_hour,
    "clocks": clocks,
    "granularity": granularity,
    "source-order": source_order,
    "key-blocks": key_blocks,
    "bytes-skew": bytes_skew,
    "cost-skew": cost_skew,
    "drift": drift,
    "turnover": turnover,
    "few-rows": few_rows,
    "short-span": short_span,
}
"""By the id of what they find; findings of one severity are told in this order."""


def judged(profile: Mapping[str, Any]) -> list[Finding] | None:
    """The findings of a trace by its profile, worst first; None if the profile is of a time before the lint."""
    lint = profile.get(LINT)
    if lint is None or not profile.get("rows"):
        return None
    seen = Evidence(profile, lint)
    return worst_first([finding for rule in RULES.values() if (finding := rule(seen)) is not None])
