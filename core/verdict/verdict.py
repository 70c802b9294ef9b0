"""Verdict on a stream: action, evidence, confidence."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from math import ceil
from typing import Any

import numpy as np

from adapt.core.counting.tables import NULL_KEY
from adapt.core.out_of_sample.outcome import LEVEL, OutOfSample
from adapt.core.out_of_sample.sampling import Sampled
from adapt.core.partitioning.frontier.frontier import Frontier
from adapt.core.partitioning.frontier.today import NO_LIMITS, Budget
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.split_map import SplitMap
from adapt.core.phrases import counted, listed, percent
from adapt.core.table import Displayed
from adapt.core.values import EMPTY, duration
from adapt.core.verdict.busiest import Busiest
from adapt.core.verdict.hot_keys import MovedKey
from adapt.core.verdict.remedies import Remedy, Way
from adapt.core.verdict.skew_over_time import OverTime
from adapt.core.verdict.verdict_class import MOST_SPLIT, VerdictClass

_STORED = (
    *("channels", "engine", "max_imbalance", "imbalance", "best_possible", "top_share", "top_key", "load", "busy_keys"),
    *("keys_to_pin", "state_to_move", "imbalance_after", "number_to_split", "split_share", "proved", "estimate"),
    *("few_rows", "mergeable"),
)
"""Attributes written to JSON unchanged."""

_MOST_SPELT = 5
"""A sentence names at most this many keys."""

_BEST = "the best possible without splitting keys"

_NEEDED = {
    VerdictClass.BALANCED: "nothing to do",
    VerdictClass.PINNING: "pinning is enough",
    VerdictClass.REBUILDING: "pinning is enough",
    VerdictClass.SPLITTING: "splitting is needed",
    VerdictClass.ANOTHER_KEY: "another key is needed",
    VerdictClass.UNKNOWN: "unknown",
}
"""What a window needs, in words."""

_ESTIMATE = (
    "Imbalance is an estimate, since the load of keys that are not listed is not known by worker: count with --method"
    " exact to know it."
)

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Confidence:
    """Confidence interval of the top-key share, and of the floor that follows."""

    top_share_low: float  # top_share_low, top_share_high: both ends
    top_share_high: float
    best_possible_low: float  # best_possible_low, best_possible_high: the floor at both ends
    best_possible_high: float
    # confidence level; None where the interval is the counter's error bound, since weighted rows are not independent
    # draws
    level: float | None
    method: str
    certain: bool  # whether the floor is on the same side of the limit at both ends


@dataclass(frozen=True, slots=True, repr=False)
class Verdict(Displayed):
    """Verdict on the skew of a stream at a number of workers."""

    verdict_class: VerdictClass
    channels: int
    engine: str  # the scheme that places the keys today
    max_imbalance: float  # T, the tolerated imbalance
    imbalance: float  # load of the busiest worker over the mean, as the engine places the keys
    best_possible: float  # best possible imbalance without splitting keys;
    top_key: str  # the hottest key as displayed; empty for the empty key, or if none is listed (`top_share` is then 0)
    top_share: float  # f_max, its share of the load
    busy_keys: int  # keys with a load; an estimate where some are not listed
    # how many keys the recommended plan pins; None where nothing is to be pinned, or if too few are listed to know
    # which
    keys_to_pin: int | None = None
    state_to_move: float | None = None  # their share of all state
    imbalance_after: float | None = None  # imbalance of all counted rows once they are pinned
    keys_to_split: tuple[str, ...] = ()  # names of the keys to split, hottest first, at most 20
    number_to_split: int = 0  # how many keys to split
    split_share: float = 0.0  # their share of the load
    # whether it is certain that no assignment of whole keys stays within the limit, where none was found
    proved: bool = True
    confidence: Confidence | None = None  # confidence interval of f_max; None where nothing was estimated
    over_time: OverTime | None = None  # the verdict window by window; None without timestamps
    # imbalance on rows that a plan was not built from; None with fewer than six windows
    out_of_sample: OutOfSample | None = None
    # imbalance by the sampling of rows alone; None if rows are not counted, or with `out_of_sample`
    sampled: Sampled | None = None
    limits: Budget = NO_LIMITS  # limits of the recommended plan
    estimate: bool = False  # whether the load of unlisted keys on a worker is an estimate
    few_rows: int | None = None  # number of rows, where these are too few to be judged; None otherwise
    mergeable: bool = False  # whether keys may be split
    load: str = "rows"  # what is counted as load: rows, cost or bytes
    busiest: Busiest | None = None  # the busiest worker today
    moved_keys: tuple[MovedKey, ...] = ()  # the keys that the plan moves, hottest first, at most 20
    remedies: tuple[Remedy, ...] = ()  # what can be done, today's placement first
    # the keys to pin with their channels; None where `keys_to_pin` is, and after reading an artefact
    pins: ExplicitMap | None = field(default=None, compare=False, repr=False)
    # the keys to split with their channels; likewise
    splits: SplitMap | None = field(default=None, compare=False, repr=False)
    # other plans to choose from; None if not asked for, and after reading an artefact
    frontier: Frontier | None = field(default=None, compare=False, repr=False)

    @property
    def times_best_possible(self) -> float:
        """Imbalance over the best possible imbalance."""
        return self.imbalance / self.best_possible

    @property
    def pins_nothing(self) -> bool:
        """Whether the recommended plan is today's placement."""
        return not self.keys_of_plan

    @property
    def recommended(self) -> Remedy | None:
        """The recommended remedy; None if too few keys are listed."""
        return next((each for each in self.remedies if each.recommended), None)

    @property
    def splits_of_plan(self) -> int:
        """Number of keys that the recommended plan splits."""
        return 0 if self.recommended is None else self.recommended.splits

    @property
    def keys_of_plan(self) -> int:
        """Number of keys that the recommended plan pins or splits."""
        return (self.keys_to_pin or 0) + self.splits_of_plan

    @property
    def judged(self) -> tuple[float, str]:
        """Imbalance with the recommended plan, and what it was measured on."""
        if self.out_of_sample is not None:
            return self.out_of_sample.plan.median, "in the median later window"
        return (self.imbalance if self.imbalance_after is None else self.imbalance_after), "of all rows"

    @property
    def is_met(self) -> bool:
        """Whether that is within the limit."""
        return self.judged[0] <= self.max_imbalance * (1 + _ROUNDING)

    @property
    def useful_workers(self) -> float:
        """Workers that can be busy while keys stay whole: 1 / f_max."""
        return 1 / self.top_share if self.top_share else float(max(self.busy_keys, 1))

    @property
    def action(self) -> str:
        """What to do, in a few words."""
        return _action(self)

    @property
    def headline(self) -> str:
        """The action, and whether the limit is then met."""
        asked = ", ".join([counted(self.channels, "worker"), *self.limits.words])
        return f"{_action(self)} ({asked}): {self.met}"

    @property
    def met(self) -> str:
        """Whether the recommended remedy meets the limit."""
        imbalance, where = self.judged
        limit = f"the limit of {self.max_imbalance:g}"
        if self.is_met:
            return f"imbalance {imbalance:.3f} {where}, within {limit}"
        return f"imbalance {imbalance:.3f} {where}, {percent(imbalance / self.max_imbalance - 1)} above {limit}"

    @property
    def sentences(self) -> list[str]:
        """Effect of the action, evidence, confidence, variation over time."""
        effect, confidence = _effect(self), self.confidence
        varies = self.over_time is not None and self.out_of_sample is None
        return [
            *([effect] if effect else []),
            *_out_of_sample(self),
            *([] if self.if_mergeable is None else [self.if_mergeable]),
            *self.by_another_key,
            _evidence(self),
            *([] if confidence is None else [_sure(self, confidence)]),
            *([] if self.sampled is None else [self.sampled.sentence]),
            *([_ESTIMATE] if self.estimate else []),
            *([_varies(self.over_time)] if varies and self.over_time is not None else []),
        ]

    @property
    def if_mergeable(self) -> str | None:
        """What splitting would give; None unless it gives more.

        None where it is allowed, too.
        """
        return _if_mergeable(self)

    def beside(self, remedy: Remedy) -> "Verdict":
        """The verdict with one more remedy."""
        ways = list(Way)
        return replace(self, remedies=tuple(sorted((*self.remedies, remedy), key=lambda each: ways.index(each.way))))

    @property
    def needs_another_key(self) -> bool:
        """Whether nothing that keeps this key meets the limit."""
        tested = self.out_of_sample
        best = self.best_possible if tested is None else float(np.median(tested.floors))
        is_out_of_reach = best > self.max_imbalance and not self.is_met and self.few_rows is None
        return self.verdict_class is VerdictClass.ANOTHER_KEY or is_out_of_reach

    @property
    def by_another_key(self) -> list[str]:
        """What another key would give, where columns were judged."""
        found = next((each for each in self.remedies if each.way is Way.KEY and each.candidates), None)
        if found is None:
            return []
        columns = counted(found.candidates, "column")
        if not found.key:
            return [f"Of {columns} judged as keys, none is better."]
        where = "in the median later window" if found.later is not None else "of all rows"
        return [
            f"Partitioned by {found.key}, the imbalance is {found.judged:.3f} {where}, the best of {columns}; state"
            f" what must stay together: {found.command} --needs COLUMN."
        ]

    @property
    def said(self) -> list[str]:
        """The verdict in words."""
        return [self.headline, *self.sentences]

    def as_data(self) -> dict[str, Any]:
        """The verdict as JSON data; numbers have the names of metrics."""
        return {
            "class": self.verdict_class.value,
            **{name: getattr(self, name) for name in (*_STORED, "times_best_possible", "useful_workers", "is_met")},
            "keys_to_split": list(self.keys_to_split),
            "remedies": [each.as_data() for each in self.remedies],
            "busiest": None if self.busiest is None else self.busiest.as_data(),
            "moved_keys": [each.as_data() for each in self.moved_keys],
            "confidence": None if self.confidence is None else asdict(self.confidence),
            "over_time": None if self.over_time is None else self.over_time.as_data(),
            "out_of_sample": None if self.out_of_sample is None else self.out_of_sample.as_data(),
            "sampled": None if self.sampled is None else asdict(self.sampled),
            "limits": {"max_migration": self.limits.max_moved_state, "max_pins": self.limits.max_pins},
            "sentence": " ".join([f"{self.headline}.", *self.sentences]),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Verdict":
        """The verdict that `as_data` wrote."""
        confidence, over_time, tested = data["confidence"], data["over_time"], data["out_of_sample"]
        sampled = data["sampled"]
        return cls(
            verdict_class=VerdictClass(data["class"]),
            keys_to_split=tuple(data["keys_to_split"]),
            confidence=None if confidence is None else Confidence(**confidence),
            over_time=None if over_time is None else OverTime.from_data(over_time),
            out_of_sample=None if tested is None else OutOfSample.from_data(tested),
            sampled=None if sampled is None else Sampled.from_data(sampled),
            limits=Budget(data["limits"]["max_migration"], data["limits"]["max_pins"]),
            remedies=tuple(map(Remedy.from_data, data.get("remedies", ()))),
            busiest=None if data.get("busiest") is None else Busiest.from_data(data["busiest"]),
            moved_keys=tuple(map(MovedKey.from_data, data.get("moved_keys", ()))),
            **{name: data[name] for name in _STORED if name in data},
        )


def _action(verdict: Verdict) -> str:
    limited = verdict.limits != NO_LIMITS
    match verdict.verdict_class:
        case VerdictClass.BALANCED:
            return "Nothing to do"
        case VerdictClass.PINNING:
            return "Pin hot keys" if verdict.keys_to_pin is None else f"Pin {counted(verdict.keys_to_pin, 'key')}"
        case VerdictClass.REBUILDING:
            return f"Pin {counted(verdict.keys_to_pin or 0, 'key')}, and choose them again every {_period(verdict)}"
        case VerdictClass.SPLITTING if verdict.splits_of_plan:
            pins = f" and pin {counted(verdict.keys_to_pin, 'key')}" if verdict.keys_to_pin else ""
            return f"Split {counted(verdict.splits_of_plan, 'key')}{pins}"
        case VerdictClass.SPLITTING if verdict.number_to_split == 1:
            key, workers = verdict.keys_to_split[0] or EMPTY, _workers_of_split(verdict)
            return f"Keep today's placement, unless key {key} can be split over {workers} workers"
        case VerdictClass.SPLITTING:
            return f"Keep today's placement, unless {counted(verdict.number_to_split, 'key')} can be split"
        case VerdictClass.ANOTHER_KEY:
            return "Partition by a finer key, or use fewer workers"
        case VerdictClass.UNKNOWN if limited and verdict.few_rows is None:
            return "Change nothing: no plan within the limits helps"
        case VerdictClass.UNKNOWN:
            return "Cannot tell: change nothing yet"


def _workers_of_split(verdict: Verdict) -> int:
    """Fewest workers over which the hottest key fits: by its load over what the largest worker may carry."""
    return max(2, ceil(verdict.best_possible / verdict.max_imbalance - _ROUNDING))


def _effect(verdict: Verdict) -> str:
    """What the action does, and why nothing less is enough."""
    match verdict.verdict_class:
        case VerdictClass.BALANCED:
            return ""
        case VerdictClass.PINNING if verdict.keys_to_pin is None:
            return (
                "Some assignment of whole keys stays within the limit, but too few keys are counted to name it: count"
                " with --method exact."
            )
        case VerdictClass.UNKNOWN if verdict.few_rows is not None:
            return f"The stream has {counted(verdict.few_rows, 'row')}, too few to judge it. Take a longer sample."
        case VerdictClass.UNKNOWN if verdict.out_of_sample is None:
            return (
                "Too few rows: keys pinned by one half of them do not lower the imbalance of the other half. A longer"
                " sample may tell."
            )
        case VerdictClass.UNKNOWN if verdict.limits != NO_LIMITS:
            return f"No plan with {' and '.join(verdict.limits.words)} lowers the imbalance; allow more."
        case VerdictClass.UNKNOWN:
            return (
                "No number of pinned keys has lowered the imbalance of later windows for certain: hot keys change"
                " faster than a plan can follow. A longer trace may tell."
            )
        case VerdictClass.SPLITTING if verdict.splits_of_plan:
            return (
                f"It moves {percent(verdict.state_to_move or 0.0)} of the state and lowers the in-sample imbalance to"
                f" {_after(verdict)}."
            )
        case VerdictClass.PINNING | VerdictClass.REBUILDING:
            pinned = "it" if verdict.keys_to_pin == 1 else "them"
            best = f", {_BEST}" if _after(verdict) == _floor(verdict) else ""
            return (
                f"Pinning {pinned} to other workers moves {percent(verdict.state_to_move or 0.0)} of the state and"
                f" lowers the in-sample imbalance to {_after(verdict)}{best}."
            )
        case VerdictClass.SPLITTING:
            split = "this key" if verdict.number_to_split == 1 else f"{_keys(verdict)}{_together(verdict)}"
            return f"{_no_assignment(verdict)}; with {split} split, there is one.{_null(verdict)}"
        case VerdictClass.ANOTHER_KEY if verdict.busy_keys < verdict.channels:
            has = "key has" if verdict.busy_keys == 1 else "keys have"
            return f"Only {verdict.busy_keys:,} {has} any load, fewer than workers.{_null(verdict)}"
        case VerdictClass.ANOTHER_KEY:
            return (
                f"{_no_assignment(verdict)}. Splitting would have to cover {_keys(verdict)}{_together(verdict)}; above"
                f" {percent(MOST_SPLIT)} another key is the better fix.{_null(verdict)}"
            )


def _period(verdict: Verdict) -> str:
    """The time between two choices of keys to pin."""
    return duration(0.0 if verdict.out_of_sample is None else verdict.out_of_sample.window_us / 1e6)


def _out_of_sample(verdict: Verdict) -> list[str]:
    """What later windows showed; nothing without any."""
    tested = verdict.out_of_sample
    if tested is None:
        return []
    windows = f"in {len(tested.rows)} later windows of about {tested.rows[0]:,} rows"
    best = f"{float(np.median(tested.floors)):.3f}"
    today = f"{tested.today.median:.3f}"
    if verdict.pins_nothing:
        return [f"Out-of-sample, {windows}: median imbalance {today}; {_BEST} is {best}."]
    low, high = tested.next_window
    rebuilt = verdict.verdict_class is VerdictClass.REBUILDING
    how = "chosen again before each" if rebuilt else "built from the windows before"
    sentences = [
        f"Out-of-sample, {windows}: median imbalance {today} today, {tested.plan.median:.3f} with such a plan {how},"
        f" lower in {tested.helped} of them; {_BEST} is {best}. In the next window, expect {low:.3f} to {high:.3f} at"
        f" {percent(LEVEL)} confidence."
    ]
    if rebuilt:
        sentences.append(f"Each rebuild moves {percent(tested.plan.state_to_move)} of the state.")
    return sentences


def _if_mergeable(verdict: Verdict) -> str | None:
    """What splitting would give, where it is not allowed and would give more."""
    split = next((each for each in verdict.remedies if each.way is Way.SPLIT), None)
    imbalance, where = verdict.judged
    if split is None or split.judged is None or verdict.mergeable or verdict.few_rows is not None:
        return None
    if verdict.out_of_sample is not None and not split.certain:
        return None
    reached, now = split.judged, max(imbalance, verdict.max_imbalance) if verdict.is_met else imbalance
    if reached >= now and not (verdict.is_met and split.cost < _cost_of(verdict) and reached <= verdict.max_imbalance):
        return None
    return (
        f"If the aggregate can be merged (--mergeable): {split.words} for an imbalance of {reached:.3f} {where}, moving"
        f" {percent(split.state_moved or 0.0)} of the state."
    )


def _cost_of(verdict: Verdict) -> tuple[float, int]:
    return (0.0, 0) if verdict.recommended is None else verdict.recommended.cost


def _evidence(verdict: Verdict) -> str:
    imbalance, floor = f"{verdict.imbalance:.3f}", _floor(verdict)
    best = f", {_BEST}" if floor == imbalance else "" if floor == _after(verdict) else f"; {_BEST} is {floor}"
    placed = f"As {verdict.engine} places the keys, the busiest worker has {imbalance} times the mean load{best}."
    if not verdict.top_share:
        return placed
    useful = ceil(verdict.useful_workers - _ROUNDING)
    return (
        f"{placed} The hottest key by {verdict.load}{_unless_named(verdict)} has {percent(verdict.top_share)} of all"
        f" {verdict.load}: parallelism above {useful:,} buys nothing unless this key is split."
    )


def _floor(verdict: Verdict) -> str:
    return f"{verdict.best_possible:.3f}"


def _after(verdict: Verdict) -> str:
    return "" if verdict.imbalance_after is None else f"{verdict.imbalance_after:.3f}"


def _unless_named(verdict: Verdict) -> str:
    is_named = (
        verdict.verdict_class is VerdictClass.SPLITTING and verdict.number_to_split == 1 and not verdict.splits_of_plan
    )
    return "" if is_named else f", {verdict.top_key or EMPTY},"


def _no_assignment(verdict: Verdict) -> str:
    if verdict.best_possible > verdict.max_imbalance:
        return "No assignment of whole keys stays within the limit"
    if verdict.proved:
        return "No assignment of whole keys stays within the limit: the hot keys do not divide evenly"
    return "No assignment of whole keys within the limit was found, although one may exist"


def _together(verdict: Verdict) -> str:
    """Share of the keys to split, unless it is that of the hottest key, which the evidence has."""
    return f" ({percent(verdict.split_share)} of the load)" if verdict.number_to_split > 1 else ""


def _null(verdict: Verdict) -> str:
    """Advice on null and empty keys, where they are among the keys to split."""
    null, empty = (each in verdict.keys_to_split for each in (NULL_KEY, ""))
    spread = " If rows with a null key share no state, spread or drop them." if null else ""
    return spread + (" If the empty key means no key, send null instead." if empty else "")


def _keys(verdict: Verdict) -> str:
    """The names of the keys to split: `a`, `a and b`, `a, b and 3 more`."""
    names = [name or EMPTY for name in verdict.keys_to_split[:_MOST_SPELT]]
    more = verdict.number_to_split - _MOST_SPELT
    return listed([*names, *([f"{more:,} more"] if more > 0 else [])])


def _sure(verdict: Verdict, confidence: Confidence) -> str:
    level = confidence.level
    source = (
        "Within the counter's error bound" if level is None else f"At {percent(level)} confidence (Clopper-Pearson)"
    )
    share = _ends(*(percent(end) for end in (confidence.top_share_low, confidence.top_share_high)))
    floor = _ends(*(f"{end:.3f}" for end in (confidence.best_possible_low, confidence.best_possible_high)))
    told = f"{source}, the hottest key has {share} of the load"
    is_within = confidence.best_possible_high <= verdict.max_imbalance
    if " to " not in floor:
        return f"{told}, {'which one worker can carry' if is_within else 'too much for one worker'} within the limit."
    told = f"{told} and the best possible imbalance is {floor}"
    if confidence.certain:
        return f"{told}: {'within' if is_within else 'above'} the limit either way."
    return f"{told}: too few rows to know whether that is within the limit; take a longer sample."


def _varies(over_time: OverTime) -> str:
    windows = over_time.windows
    shares = [window.top_share for window in windows]
    floors = [window.best_possible for window in windows]
    classes = ", ".join(f"{_NEEDED[each]} in {count}" for each, count in over_time.classes)
    return (
        f"Over time, in {len(windows)} windows of about {windows[0].rows:,} rows:"
        f" {classes if over_time.changes else f'{_NEEDED[over_time.classes[0][0]]} in every one'}. The hottest key of a"
        f" window has {_ends(percent(min(shares)), percent(max(shares)))} of the load, and the best possible imbalance"
        f" is {_ends(f'{min(floors):.3f}', f'{max(floors):.3f}')}."
    )


def _ends(low: str, high: str) -> str:
    """An interval in words; a single value where both ends read the same."""
    return low if low == high else f"{low} to {high}"
