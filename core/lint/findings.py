"""Lint rules: pure functions of the evidence."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from adapt.core.counting.frequencies import Frequencies
from adapt.core.lint import key_rules, time_rules
from adapt.core.lint.evidence import LINT, Evidence
from adapt.core.lint.finding import Finding, worst_first
from adapt.core.lint.merging import shown_key

RULES: Mapping[str, Callable[[Evidence], Finding | None]] = {
    "few-keys": key_rules.few_keys,
    "default-key": key_rules.default_key,
    "float-keys": key_rules.float_keys,
    "null-text": key_rules.null_text,
    "schema-ids": key_rules.schema_ids,
    "key-sample": key_rules.key_sample,
    "record-sample": key_rules.record_sample,
    "local-times": time_rules.local_times,
    "outlier-dates": time_rules.outlier_dates,
    "minute-of-hour": time_rules.minute_of_hour,
    "clocks": time_rules.clocks,
    "granularity": time_rules.granularity,
    "source-order": time_rules.source_order,
    "key-blocks": key_rules.key_blocks,
    "bytes-skew": partial(key_rules.skewed_amount, "bytes"),
    "cost-skew": partial(key_rules.skewed_amount, "cost"),
    "drift": key_rules.drift,
    "turnover": key_rules.turnover,
    "few-rows": time_rules.few_rows,
    "short-span": time_rules.short_span,
}
"""Rules by id, in the order of their findings within a severity."""


HOTTEST = 1000
"""Hottest counted keys that are looked at."""

ON_KEYS = ("few-keys", "default-key", "float-keys", "schema-ids")
"""Rules that need no rows, but only counted keys."""

ON_ROWS = ("null-text", "key-sample", "record-sample", "bytes-skew", "cost-skew")
"""Rules that need rows, but no times."""

_RATES = ("minute-of-hour", "granularity", "record-sample", "key-sample", "clocks", "outlier-dates")
"""Rules whose findings make rates, and so queues and latencies, misleading."""


def on_rates(findings: Sequence[Finding]) -> str:
    """What makes the rates of a trace misleading, if anything."""
    found = next((each for each in findings if each.id in _RATES), None)
    return "" if found is None else f"Rates, and so latencies, are misleading: {found.evidence} (lint: {found.id})"


def judged_counts(counts: Frequencies) -> list[Finding]:
    """Findings from counted keys alone, worst first."""
    hottest = zip(counts.keys[:HOTTEST], counts.count_low, strict=False)
    top_keys = [[shown_key(key), int(count)] for key, count in hottest]
    profile = {
        "rows": max(int(counts.total), 1),
        "distinct_keys": counts.distinct,
        "top_keys": top_keys,
        "key_type": counts.key_type.value,
    }
    seen = Evidence(profile, {})
    return worst_first([finding for name in ON_KEYS if (finding := RULES[name](seen)) is not None])


def judged(profile: Mapping[str, Any]) -> list[Finding] | None:
    """Findings from the profile of a trace, worst first.

    None if the profile has no lint evidence.
    """
    lint = profile.get(LINT)
    if lint is None or not profile.get("rows"):
        return None
    seen, timed = Evidence(profile, lint), "instants" in lint
    rules = [rule for name, rule in RULES.items() if timed or name in (*ON_KEYS, *ON_ROWS)]
    return worst_first([finding for rule in rules if (finding := rule(seen)) is not None])
