"""A verdict in words."""

from typing import TYPE_CHECKING

from adapt.core.counting.tables import NULL_KEY
from adapt.core.verdict.verdict_class import MOST_SPLIT, Cure

if TYPE_CHECKING:
    from adapt.core.verdict.verdict import Confidence, Verdict

_MOST_SPELT = 5


def headline(verdict: "Verdict") -> str:
    """The class, at how many channels, by what limit."""
    return f"{verdict.cure.value} ({_channels(verdict.channels)}, limit {verdict.tolerance:g})"


def sentences(verdict: "Verdict") -> list[str]:
    """What is so today and at best; what to do; how sure that is; how it varies."""
    told = [_today(verdict), _cure(verdict)]
    if verdict.confidence is not None:
        told.append(_sure(verdict, verdict.confidence))
    if verdict.over_time is not None:
        told.append(_varies(verdict))
    return told


def _today(verdict: "Verdict") -> str:
    placed = f"Today ({verdict.engine}) the fullest of {_channels(verdict.channels)} carries"
    floor = f"no placement of whole keys does better than {verdict.imbalance_floor:.3f}"
    heaviest = (
        f" The heaviest key, {verdict.top_key}, has {_percent(verdict.top_share)} of the load, so that"
        f" {verdict.useful_workers:,.3g} channels at most can be busy while keys stay whole."
        if verdict.top_key
        else ""
    )
    return f"{placed} {verdict.imbalance:.3f} times the average; {floor}.{heaviest}"


def _cure(verdict: "Verdict") -> str:
    match verdict.cure:
        case Cure.NONE_NEEDED:
            return f"Nothing needs to be done: {verdict.imbalance:.3f} is within {verdict.tolerance:g}."
        case Cure.PLACEMENT:
            return _placement(verdict)
        case Cure.SPLITTING:
            return (
                f"{_no_placement(verdict)} Splitting {_keys(verdict)}, {_percent(verdict.split_share)} of the load,"
                f" over the channels that have room makes it possible.{_null(verdict)}"
            )
        case Cure.ANOTHER_KEY:
            return f"{_no_placement(verdict)} {_another(verdict)}{_null(verdict)}"


def _placement(verdict: "Verdict") -> str:
    if verdict.keys_to_move is None:
        return (
            f"Placing keys one by one keeps within {verdict.tolerance:g}; which ones, these counts list too few keys to"
            " tell."
        )
    keys = "1 key" if verdict.keys_to_move == 1 else f"{verdict.keys_to_move:,} keys"
    return (
        f"Moving {keys}, {_percent(verdict.state_to_move or 0.0)} of the state, brings it to"
        f" {verdict.imbalance_after or 1.0:.3f}, within {verdict.tolerance:g}."
    )


def _no_placement(verdict: "Verdict") -> str:
    if verdict.imbalance_floor > verdict.tolerance or verdict.proved:
        why = "" if verdict.imbalance_floor > verdict.tolerance else ": the heavy keys do not divide evenly"
        return f"No placement keeps within {verdict.tolerance:g}{why}."
    return f"No placement within {verdict.tolerance:g} was found, though one may exist."


def _another(verdict: "Verdict") -> str:
    if verdict.busy_keys < verdict.channels:
        few = "Only 1 key has" if verdict.busy_keys == 1 else f"Only {verdict.busy_keys:,} keys have"
        return f"{few} any load, fewer than channels: partition by a finer key, or take fewer channels."
    return (
        f"Splitting would have to spread {_keys(verdict)}, {_percent(verdict.split_share)} of the load, which is"
        f" more than {MOST_SPLIT:.0%}: partition by a finer key, or take fewer channels."
    )


def _null(verdict: "Verdict") -> str:
    """What can be done about rows without a key, where they are among those that are too heavy."""
    has_null = NULL_KEY in verdict.keys_to_split
    return " Rows without a key can be spread or left out, if they share no state." if has_null else ""


def _keys(verdict: "Verdict") -> str:
    names, number = verdict.keys_to_split, verdict.number_to_split
    spelt = ", ".join(names[:_MOST_SPELT]) + (f" and {number - _MOST_SPELT:,} more" if number > _MOST_SPELT else "")
    return f"{'1 key' if number == 1 else f'{number:,} keys'} ({spelt})"


def _sure(verdict: "Verdict", confidence: "Confidence") -> str:
    ends = f"{_percent(confidence.top_share_low)} to {_percent(confidence.top_share_high)}"
    floors = f"{confidence.imbalance_floor_low:.3f} to {confidence.imbalance_floor_high:.3f}"
    if confidence.level is None:
        source = "by the bounds of the counter"
    else:
        source = f"at {confidence.level:.0%} confidence (Clopper-Pearson, messages taken as drawn)"
    told = f"The share of the heaviest key is {ends} {source}, so the floor is {floors}"
    if confidence.certain:
        side = "within" if confidence.imbalance_floor_high <= verdict.tolerance else "above"
        return f"{told}: {side} the limit throughout."
    return f"{told}: too few messages to say on which side of {verdict.tolerance:g} it is; take a longer sample."


def _varies(verdict: "Verdict") -> str:
    over_time = verdict.over_time
    assert over_time is not None
    shares = [pane.top_share for pane in over_time.panes]
    floors = [pane.imbalance_floor for pane in over_time.panes]
    ranges = (
        f"In {len(over_time.panes)} panes of about {over_time.panes[0].rows:,} rows the heaviest key of each has"
        f" {_percent(min(shares))} to {_percent(max(shares))}, and the floor is {min(floors):.3f} to {max(floors):.3f}"
    )
    if over_time.changes:
        each = ", ".join(f"{cure.value} in {count}" for cure, count in over_time.classes)
        return f"{ranges}; the class changes: {each}."
    return f"{ranges}; the class of every one: {over_time.classes[0][0].value}."


def _channels(number: int) -> str:
    return "1 channel" if number == 1 else f"{number:,} channels"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
