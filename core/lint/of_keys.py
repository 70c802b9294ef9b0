"""What is odd about the keys of a trace: too few, one that means none, blocks, drift, turnover, heavy amounts."""

import math
import re

import numpy as np

from adapt.core.counting.tables import NULL_KEY
from adapt.core.labels import count, label
from adapt.core.lint import thresholds
from adapt.core.lint.evidence import Evidence
from adapt.core.lint.finding import Finding, Severity
from adapt.core.values import share

_NONE = frozenset(
    (
        *("", "-", "--", "?", "null", "(null)", "<null>", "none", "(none)", "nil", "nan", "na", "n/a", "#n/a"),
        *("undefined", "unknown", "unk", "missing", "empty", "default", "anonymous", "anon", "guest", "other"),
        *("not set", "(not set)", "0.0.0.0", "::", "00000000-0000-0000-0000-000000000000", "false"),
    )
)
"""What systems write where there is no key; compared in small letters."""

_ZERO = re.compile(r"[+-]?0+(\.0+)?|-1(\.0+)?")
_PARTS = re.compile(r"([:|/,;_ ])")
"""Between the parts of a key that is put together."""


def key_sample(seen: Evidence) -> Finding | None:
    """A trace that has some of the keys of its source."""
    sample = seen.lint.get("sample")
    if sample is None:
        return None
    rows = seen.rows + int(sample["left_out"])
    kept, times = share(seen.rows / rows), f"{rows / seen.rows:.3g} times"
    return Finding(
        "key-sample",
        Severity.WARNING,
        f"It has {share(sample['share'])} of the keys of its source, and {count(seen.rows)} of {count(rows)} rows.",
        "Order, shares among these keys and their life-lines are true."
        f" Rates are of {kept} of all rows, and of these a key has {times} less than its share here;"
        " heavy keys that were left out are not seen, so that imbalance and floor are those of the sample.",
        "To place heavy keys, ingest all keys; to hide them, --hash-keys does.",
        {"share": sample["share"], "rows": seen.rows, "source_rows": rows},
    )


def few_keys(seen: Evidence) -> Finding | None:
    """Hardly more keys than channels, or fewer."""
    keys = seen.keys
    if keys >= thresholds.CHANNELS * thresholds.FEW_KEYS_A_CHANNEL:
        return None
    figures = {"keys": keys, "channels": thresholds.CHANNELS}
    named = f" ({', '.join(label(NULL_KEY if key is None else key) for key, _ in seen.top_keys)})" if keys <= 5 else ""
    if keys < thresholds.CHANNELS:
        return Finding(
            "few-keys",
            Severity.SEVERE,
            f"There {'is' if keys == 1 else 'are'} {keys} distinct key{'s' if keys > 1 else ''}{named}.",
            f"Of more than {keys} channels the others are idle under every placement of whole keys: imbalance and its"
            f" floor at N channels are at least N/{keys}.",
            "Partition by a finer key, or by two columns together.",
            figures,
        )
    luck = 1 + math.sqrt(2 * math.log(thresholds.CHANNELS) * thresholds.CHANNELS / keys)
    return Finding(
        "few-keys",
        Severity.WARNING,
        f"There are only {keys} distinct keys.",
        f"Were they all equally heavy, hashing them over {thresholds.CHANNELS} channels would still leave the fullest"
        f" with about {luck:.1f} times the mean; what a hash gives here is luck, and another hash gives another"
        " number.",
        "Judge by a plan with explicit keys, or partition by a finer key.",
        figures | {"imbalance_by_luck": round(luck, 3)},
    )


def default_key(seen: Evidence) -> Finding | None:
    """A heavy key that stands for no key."""
    names = {key for key, _ in seen.top_keys}
    for key, rows in seen.top_keys:
        weight = rows / seen.rows
        if weight < thresholds.DEFAULT_KEY_SHARE:
            return None
        if not _means_none(key, names):
            continue
        is_heaviest = rows == seen.top_keys[0][1]
        shown = "null" if key is None else f"the key {label(key)!r}" if key else "the empty key"
        engines = (
            "Kafka spreads rows without a key over all partitions, Spark hashes null to one, Flink refuses it;"
            " here it is one key."
            if key is None
            else "One channel gets all of them, though nothing says that they belong together."
        )
        return Finding(
            "default-key",
            Severity.SEVERE if is_heaviest else Severity.WARNING,
            f"{shown[0].upper()}{shown[1:]}, which looks like no key at all, has {count(rows)} rows,"
            f" {share(weight)} of all{', more than any other' if is_heaviest else ''}.",
            engines + (" f_max, the floors and the useful channels are those of this key." if is_heaviest else ""),
            "Leave such rows out, or give them a key of their own: --key \"coalesce(nullif(KEY, '-'), uuid())\", say.",
            {"key": key, "rows": rows, "share": weight},
        )
    return None


def _means_none(key: str | None, others: set[str | None]) -> bool:
    """Whether a key says that there is none; a zero among ones and twos is a number like they are."""
    if key is None or key.strip().lower() in _NONE:
        return True
    parts = _PARTS.split(key)
    told = [part for part in parts[::2] if part]
    if not told or not all(_ZERO.fullmatch(part) or part.lower() in _NONE for part in told):
        return False
    near = {"".join("1" if place == at else part for place, part in enumerate(parts)) for at in range(0, len(parts), 2)}
    return not near & others


def key_blocks(seen: Evidence) -> Finding | None:
    """Rows of one key stand together, in the trace or in its source."""
    chance = seen.chance_of_same
    if chance >= thresholds.BLOCKS / 2:
        return None
    same = seen.lint["same_as_before"] / max(1, seen.rows - 1)
    if same >= thresholds.BLOCKS:
        return Finding(
            "key-blocks",
            Severity.WARNING,
            f"In time order {share(same)} of all rows have the key of the row before; at random it would be"
            f" {share(chance)}.",
            "At any time one key has nearly all rows, so that one channel works and the others wait, whatever the plan:"
            " imbalance over the whole trace says nothing about load over time.",
            "Judge it with `adapt replay`, period by period; look whether a single producer wrote key by key.",
            {"same_as_before": same, "by_chance": chance},
        )
    source = (seen.lint.get("source") or {}).get("all")
    if source and 1 - source["stretches"] / source["rows"] >= thresholds.BLOCKS:
        together = 1 - source["stretches"] / source["rows"]
        first = "the first " if source["rows"] < seen.rows else ""
        return Finding(
            "key-blocks",
            Severity.NOTE,
            f"The source stands key by key: {first}{count(source['rows'])} rows of {count(source['keys'])} keys in"
            f" {count(source['stretches'])} stretches of one key ({share(together)} of all rows follow one of their"
            f" key; by time it is {share(same)}).",
            "The trace is sorted by time, so counts and plans hold; what reads the source as it lies has one key, and"
            " so one busy channel, at a time. Rows of one instant keep the order of the source.",
            "",
            {"same_as_before": together, "by_time": same, "by_chance": chance, "stretches": source["stretches"]},
        )
    return None


def drift(seen: Evidence) -> Finding | None:
    """The heavy keys of the first half are not those of the second."""
    halves = seen.lint["halves"]
    first, second = (np.array(halves[name], float) for name in ("first", "second"))
    counts = first + second
    rows = (seen.rows // 2, seen.rows - seen.rows // 2)
    if counts.sum() < thresholds.DRIFT_ROWS or not all(rows):
        return None
    heavy = counts.sum() / seen.rows
    moved = float(np.abs(first / rows[0] - second / rows[1]).sum() / 2 / heavy)
    chance = float(np.sqrt(2 / math.pi * counts / rows[0] / rows[1]).sum() / 2 / heavy)
    if moved - chance < thresholds.DRIFT_NOTE:
        return None
    top, kept = halves["tops"]
    severity = Severity.WARNING if moved - chance >= thresholds.DRIFT_WARNING else Severity.NOTE
    return Finding(
        "drift",
        severity,
        f"Of the {top} top keys of the first half of the rows, {kept} are among the second half's; {share(moved)} of"
        f" the load of the {len(counts)} heaviest keys lies on other keys there ({share(chance)} by chance).",
        "Counts of the whole trace mix two streams: a plan made from the past meets other heavy keys, so that the"
        " imbalance that build and compare foresee is too good.",
        "See `adapt partition count --over time`, and judge with `adapt replay repartition`.",
        {"top": top, "kept": kept, "moved": moved, "by_chance": chance},
    )


def turnover(seen: Evidence) -> Finding | None:
    """Keys go and others come."""
    again = seen.lint["again"]
    if again["keys"] < thresholds.TURNOVER_KEYS or again["by_chance"] is None:
        return None
    came = again["both"] / again["keys"]
    error = math.sqrt(max(again["by_chance"] * (1 - again["by_chance"]), 1e-9) / again["keys"])
    if again["by_chance"] - came < max(thresholds.TURNOVER, thresholds.STANDARD_ERRORS * error):
        return None
    return Finding(
        "turnover",
        Severity.NOTE,
        f"Of the keys of the first half of the rows {share(came)} come again in the second; were the rows shuffled,"
        f" {share(again['by_chance'])} would.",
        "The domain is renewed all the time: explicit maps of keys age, and state for keys that never come again must"
        " be dropped by time. Distinct keys grow with the length of the trace.",
        "Plan with few tracked keys, and rebuild often (`adapt replay repartition --period`).",
        {"again": came, "by_chance": again["by_chance"], "sampled": again["keys"]},
    )


def skewed_amount(name: str, seen: Evidence) -> Finding | None:
    """The heaviest key by cost or bytes has far more of these than the heaviest has of rows."""
    amount = seen.lint["weights"].get(name)
    if not amount or not amount["total"] or not seen.top_keys:
        return None
    by_amount = amount["amount"] / amount["total"]
    by_rows = seen.top_keys[0][1] / seen.rows
    if by_amount < thresholds.SKEW_RATIO * by_rows or by_amount < thresholds.F_MAX_MATTERS:
        return None
    key = NULL_KEY if amount["key"] is None else amount["key"]
    return Finding(
        f"{name}-skew",
        Severity.WARNING,
        f"The heaviest key by {name}, {label(key)}, has {share(by_amount)} of all {name} and"
        f" {share(amount['rows'] / seen.rows)} of the rows; the heaviest by rows, {label(seen.top_keys[0][0])}, has"
        f" {share(by_rows)} of these.",
        f"By {name} {1 / by_amount:.3g} channels are useful, by rows {1 / by_rows:.3g}: what is even in rows is not"
        f" even in {name}.",
        _WEIGHED[name],
        {"key": amount["key"], "share": by_amount, "top_share_of_rows": by_rows},
    )


_WEIGHED = {
    "bytes": "Count with --weight bytes, or plan with --measure network=bytes, if bytes are the load.",
    "cost": "Keep --weight cost, the default where a trace has costs; counts of rows mislead here.",
}
