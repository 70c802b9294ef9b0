"""Lint rules on keys: few keys, placeholders, blocks, drift, turnover, skew."""

import math
import re

import numpy as np

from adapt.core.counting.tables import NULL_KEY
from adapt.core.labels import label
from adapt.core.lint import thresholds
from adapt.core.lint.evidence import Evidence
from adapt.core.lint.finding import Finding, Severity
from adapt.core.phrases import percent

_NONE = frozenset(
    (
        *("", "-", "--", "?", "null", "(null)", "<null>", "none", "(none)", "nil", "nan", "na", "n/a", "#n/a"),
        *("undefined", "unknown", "unk", "missing", "empty", "default", "anonymous", "anon", "guest", "other"),
        *("not set", "(not set)", "0.0.0.0", "::", "00000000-0000-0000-0000-000000000000", "false"),
    )
)
"""Placeholders for a missing key, in lower case."""

_ZERO = re.compile(r"[+-]?0+(\.0+)?|-1(\.0+)?")
_HEX = re.compile(r"00[0-9a-f]{10,}")
_FLOAT = re.compile(r"[+-]?\d+\.0+")
_PARTS = re.compile(r"([:|/,;_ ])")
"""Separators in a composite key."""


def key_sample(seen: Evidence) -> Finding | None:
    """A trace that holds a sample of the source's keys."""
    sample = seen.lint.get("sample")
    if sample is None:
        return None
    rows = seen.rows + int(sample["left_out"])
    kept, times = percent(seen.rows / rows), f"{rows / seen.rows:.3g} times"
    return Finding(
        "key-sample",
        Severity.WARNING,
        f"The trace holds {percent(sample['share'])} of the keys of its source and {seen.rows:,} of {rows:,} rows.",
        "Order and shares among these keys are right."
        f" Rates cover {kept} of all rows, and a key's share of all rows is {times} less than its share here; hot keys"
        " outside the sample are missing, so imbalance and its floor are those of the sample.",
        "To pin hot keys, ingest all keys; to anonymize them, use --hash-keys.",
        {"share": sample["share"], "rows": seen.rows, "source_rows": rows},
    )


def record_sample(seen: Evidence) -> Finding | None:
    """A trace that holds a sample of the records of a topic."""
    sample = seen.lint.get("record_sample")
    if sample is None:
        return None
    effect = sample.get("effect", 1.0)
    worth = "" if effect < thresholds.COSTLY else f", worth {round(seen.rows / effect):,} independent ones"
    return Finding(
        "record-sample",
        Severity.WARNING,
        f"The trace holds a sample of {percent(sample['share'])} of the records of its topic: {seen.rows:,} of"
        f" {sample['records']:,}{worth}.",
        "Shares and imbalances are within the intervals that the verdict prints. Rates and loads per second are"
        f" {percent(sample['share'])} of the topic's, and rare keys are missing.",
        "For rates, latency or state, ingest all records; for all rows of some keys, use --sample-keys.",
        {"share": sample["share"], "rows": seen.rows, "source_rows": sample["records"]},
    )


def few_keys(seen: Evidence) -> Finding | None:
    """Few keys per channel, or fewer keys than channels."""
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
            f"Workers beyond {keys} are idle unless keys are split: at N workers, the imbalance is at least N/{keys}.",
            "Partition by a finer key, or by two columns.",
            figures,
        )
    luck = 1 + math.sqrt(2 * math.log(thresholds.CHANNELS) * thresholds.CHANNELS / keys)
    return Finding(
        "few-keys",
        Severity.WARNING,
        f"There are only {keys} distinct keys.",
        f"Even if all were equally hot, hashing them over {thresholds.CHANNELS} workers would leave the busiest with"
        f" about {luck:.1f} times the mean load; another hash gives another imbalance.",
        "Use a plan with pinned keys, or partition by a finer key.",
        figures | {"imbalance_by_chance": round(luck, 3)},
    )


def default_key(seen: Evidence) -> Finding | None:
    """A hot key that is a placeholder for a missing key."""
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
            "Kafka spreads rows with a null key over all partitions, Spark hashes them to one, Flink rejects them;"
            " here null is one key."
            if key is None
            else "One worker gets all of them, although they need not belong together."
        )
        return Finding(
            "default-key",
            Severity.SEVERE if is_heaviest else Severity.WARNING,
            f"{shown[0].upper()}{shown[1:]}, which looks like a missing key, has {rows:,} rows,"
            f" {percent(weight)} of all{', more than any other key' if is_heaviest else ''}.",
            engines + (" The best possible imbalance and the useful workers follow from it." if is_heaviest else ""),
            "Let producers send null instead of an empty key, or give each row its own key, such as --key"
            " \"coalesce(nullif(KEY, ''), uuid())\"."
            if key == ""
            else "Drop these rows, or give each its own key, such as --key \"coalesce(nullif(KEY, '-'), uuid())\".",
            {"key": key, "rows": rows, "share": weight},
        )
    return None


def null_text(seen: Evidence) -> Finding | None:
    """Null keys that the source prints as text."""
    text = seen.lint.get("null_text")
    rows = int(seen.profile["facts"]["null_keys"]) if text else 0
    if not rows:
        return None
    return Finding(
        "null-text",
        Severity.NOTE,
        f"{rows:,} {'row has' if rows == 1 else 'rows have'} a null key, which their source prints as {text!r}.",
        f"A key that is the text {text!r} looks the same, and counts as null here.",
        "If there are such keys, print null in another way, such as --property null.literal=NULL-KEY.",
        {"text": text, "rows": rows},
    )


def schema_ids(seen: Evidence) -> Finding | None:
    """The same key under several ids of a schema registry."""
    ids: dict[str, set[int]] = {}
    rows: dict[str, int] = {}
    for key, of_key in seen.top_keys:
        packed = None if key is None else _registered(key, is_hex=seen.profile.get("key_type") == "binary")
        if packed is not None and 0 < packed[0] < 1 << 24:
            number, rest = packed
            ids.setdefault(rest, set()).add(number)
            rows[rest] = rows.get(rest, 0) + of_key
    several = {rest: numbers for rest, numbers in ids.items() if len(numbers) > 1}
    if not several:
        return None
    worst = max(several, key=lambda rest: rows[rest])
    numbers = sorted(several[worst])
    return Finding(
        "schema-ids",
        Severity.WARNING,
        f"Of {len(ids):,} hot keys, {len(several):,} came with several schema ids before the same value; the"
        f" hottest of them with ids {', '.join(map(str, numbers))}, in {rows[worst]:,} rows.",
        "Producers hash the id too, so one entity is two keys, in two partitions; shares of such keys are too low.",
        'Use one schema id for keys in all producers, or strip the first 5 bytes: --key "substring(KEY, 6)".',
        {"keys": len(several), "ids": numbers, "rows": rows[worst]},
    )


def _registered(key: str, *, is_hex: bool) -> tuple[int, str] | None:
    """The schema id and the rest of a key in a registry's wire format: a zero byte, 4 bytes of id, the value."""
    if key.startswith("\0") and len(key) > 5:
        return int.from_bytes(key[1:5].encode("latin-1", "replace")), key[5:]
    if is_hex and _HEX.fullmatch(key):
        return int(key[2:10], 16), key[10:]
    return None


def float_keys(seen: Evidence) -> Finding | None:
    """Keys that are whole numbers written with `.0`."""
    named = [key for key, _ in seen.top_keys if key is not None and key.strip().lower() not in _NONE]
    is_text = seen.profile.get("key_type", "string") == "string"  # decimals are written so
    if not named or not is_text or not all(_FLOAT.fullmatch(key) for key in named):
        return None
    return Finding(
        "float-keys",
        Severity.WARNING,
        f"Keys look like {named[0]}: whole numbers written as floats, as pandas does if some ids are missing.",
        f"They are placed by this text; a job whose key is {named[0].partition('.')[0]} places it elsewhere.",
        'Ingest again with --key "bigint(KEY)".',
        {"key": named[0]},
    )


def _means_none(key: str | None, others: set[str | None]) -> bool:
    """Whether a key is a placeholder; a zero next to other numbers is an ordinary number."""
    if key is None or key.strip().lower() in _NONE:
        return True
    parts = _PARTS.split(key)
    named = [part for part in parts[::2] if part]
    if not named or not all(_ZERO.fullmatch(part) or part.lower() in _NONE for part in named):
        return False
    near = {"".join("1" if place == at else part for place, part in enumerate(parts)) for at in range(0, len(parts), 2)}
    return not near & others


def key_blocks(seen: Evidence) -> Finding | None:
    """Rows grouped by key, in the trace or in its source."""
    chance = seen.chance_of_same
    if chance >= thresholds.BLOCKS / 2:
        return None
    same = seen.lint["same_as_before"] / max(1, seen.rows - 1)
    if same >= thresholds.BLOCKS:
        return Finding(
            "key-blocks",
            Severity.WARNING,
            f"In time order, {percent(same)} of all rows have the same key as the row before; in random order,"
            f" {percent(chance)} would.",
            "At any time one key has nearly all rows: one worker is busy while the others wait, whatever the plan."
            " Imbalance over the whole trace says nothing about load over time.",
            "Replay the trace with `adapt replay`; check whether a single producer writes key by key.",
            {"same_as_before": same, "by_chance": chance},
        )
    source = (seen.lint.get("source") or {}).get("all")
    if source and 1 - source["stretches"] / source["rows"] >= thresholds.BLOCKS:
        together = 1 - source["stretches"] / source["rows"]
        first = "the first " if source["rows"] < seen.rows else ""
        return Finding(
            "key-blocks",
            Severity.NOTE,
            f"The source is grouped by key: {first}{source['rows']:,} rows of {source['keys']:,} keys in"
            f" {source['stretches']:,} runs of one key ({percent(together)} of all rows follow a row of the same"
            f" key; in time order, {percent(same)} do).",
            "The trace is sorted by time, so counts and plans hold. A job that reads the source in file order has one"
            " key, and so one busy worker, at a time. Rows with equal times keep the order of the source.",
            "",
            {"same_as_before": together, "by_time": same, "by_chance": chance, "stretches": source["stretches"]},
        )
    return None


def drift(seen: Evidence) -> Finding | None:
    """Hot keys of the first half differ from those of the second."""
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
        f"Of the top {top} keys of the first half of the rows, {kept} are in the second half's top {top};"
        f" {percent(moved)} of the load of the {len(counts)} hottest keys is on other keys there ({percent(chance)} is"
        " expected from random order).",
        "A plan built from past rows meets other hot keys, so the in-sample imbalance of `partition build` and"
        " `partition compare` is optimistic.",
        "See `adapt partition count --over time`, and measure out-of-sample with `adapt replay repartition`.",
        {"top": top, "kept": kept, "moved": moved, "by_chance": chance},
    )


def turnover(seen: Evidence) -> Finding | None:
    """Keys disappear and new ones appear."""
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
        f"Of the keys of the first half of the rows, {percent(came)} return in the second; with shuffled rows,"
        f" {percent(again['by_chance'])} would.",
        "Pinned keys go stale, and state of keys that never return needs a TTL. The number of distinct keys grows with"
        " the length of the trace.",
        "Pin few keys, and rebuild the plan often (`adapt replay repartition --period`).",
        {"again": came, "by_chance": again["by_chance"], "sampled": again["keys"]},
    )


def skewed_amount(name: str, seen: Evidence) -> Finding | None:
    """Cost or bytes far more skewed than rows."""
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
        f"The hottest key by {name}, {label(key)}, has {percent(by_amount)} of the {name} and"
        f" {percent(amount['rows'] / seen.rows)} of the rows; the hottest by rows, {label(seen.top_keys[0][0])}, has"
        f" {percent(by_rows)} of the rows.",
        f"By {name}, {1 / by_amount:.3g} workers are useful; by rows, {1 / by_rows:.3g}. A plan that balances rows does"
        f" not balance {name}.",
        _WEIGHED[name],
        {"key": amount["key"], "share": by_amount, "top_share_of_rows": by_rows},
    )


_WEIGHED = {
    "bytes": "If bytes are the load, count with --weight bytes or plan with --measure network=bytes.",
    "cost": "Keep --weight cost, the default for a trace with costs; row counts mislead here.",
}
