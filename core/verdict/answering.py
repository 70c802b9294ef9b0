"""Judge counted keys: verdict, recommended plan, hot keys, channels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.audit.audit import Audit
from adapt.core.counting.frequencies import Frequencies
from adapt.core.engines.names import AnyScheme, Engine, Target
from adapt.core.keys.partitioner import Partitioner
from adapt.core.out_of_sample.outcome import Track
from adapt.core.out_of_sample.windows import CountedPane, CountedPanes
from adapt.core.partitioning.build import Recipe, describe
from adapt.core.partitioning.measures.cells import Hashers, base_of
from adapt.core.partitioning.measures.imbalance import over_average, relative
from adapt.core.partitioning.measures.per_channel import BeforeAfter
from adapt.core.partitioning.measures.population import Counted, Population, frequencies_in
from adapt.core.partitioning.measures.resources import ResourceFunction
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.partitioning.problem.at_random import Elsewhere, share_at_random, spread_at_random, spread_elsewhere
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.partitioning.schemes.split_map import SplitPartitioner
from adapt.core.partitioning.split_plan import dealt_metrics
from adapt.core.stream import KeyType
from adapt.core.verdict.answer import Answer, AtRandomLoad
from adapt.core.verdict.goal import Goal
from adapt.core.verdict.hot_keys import MOST_KEYS, HotKeys
from adapt.core.verdict.remedies import Remedy, Way
from adapt.core.verdict.stream_verdict import judge
from adapt.core.verdict.verdict import Verdict


def today_of(
    engine: AnyScheme, channels: int, recipe: Recipe, current: Plan | None, key_type: KeyType
) -> tuple[Plan, str]:
    """Today's placement and its name: the current plan, or the engine.

    A plan for another number of channels places no keys at this one; its hashing does.
    """
    if current is not None and current.channels == channels:
        return current, "the current plan"
    hashing, groups = (engine, recipe.max_parallelism) if current is None else (current.hashing, None)
    key_type = key_type if current is None else current.key_type
    replicas = recipe.replicas if current is None else current.replicas
    plan = Plan(
        Scheme.HYBRID, channels, key_type, hash=recipe.hash, replicas=replicas, base=hashing, max_parallelism=groups
    )
    return plan, hashing.value


def hashers_today(
    engine: AnyScheme, channels: int, recipe: Recipe, key_type: KeyType, current: Plan | None = None
) -> Hashers:
    """The hasher of keys that are not pinned today."""
    return (base_of(today_of(engine, channels, recipe, current, key_type)[0].partitioner()),)


def recommended_plan(
    verdict: Verdict, counted: Counted, recipe: Recipe, today: Plan, parent: str | None, trace: str | None
) -> Plan:
    """Today's placement with the verdict's pins; without any, as it is.

    Its metrics are those of the counted keys, with the migration from today's placement.

    Args:
        today: As in `today_of`.
        parent: Content hash of the current plan, if any.
        trace: Fingerprint of the trace.
    """
    key_type = frequencies_in(counted).key_type
    pinned = ExplicitMap.from_mapping(today.explicit, key_type.storage)
    pins = ExplicitMap.from_mapping({}, key_type.storage) if verdict.pins is None else verdict.pins
    own = replace(
        recipe,
        scheme=Scheme.HYBRID,
        base=today.hashing,
        hash=today.hash,
        max_parallelism=today.max_parallelism,
        max_pins=None,
    )
    placed = pins.over(pinned)
    if verdict.splits:
        whole = {key: to for key, to in placed.items() if key not in verdict.splits}
        placed = ExplicitMap.from_mapping(whole, key_type.storage)
    partitioner = make_partitioner(
        *(own.scheme, today.channels, own.hash, today.replicas, placed, today.max_parallelism, own.base),
        key_type=key_type,
    )
    plan = replace(describe(counted, own, partitioner, today.partitioner(), parent, trace).plan, construction=None)
    if not verdict.splits:
        return plan
    population = Population.from_counts(counted, today.partitioner())
    metrics = dealt_metrics(population, own, SplitPartitioner(verdict.splits, partitioner), today.partitioner())
    return replace(plan, splits=verdict.splits, metrics=metrics.as_data(), predicted_loads={})


def answer_on(
    counted: Counted,
    engine: AnyScheme,
    channels: int,
    recipe: Recipe,
    *,
    panes: CountedPanes | None = None,
    current: Plan | Audit | None = None,
    trace: str | None = None,
    goal: Goal | None = None,
) -> Answer:
    """Verdict, recommended plan, hot keys, and channels before and after it.

    Args:
        recipe: Loads, capacities, and the key groups of an engine that has them.
        panes: The same stream cut into windows.
        current: The current plan, or the partitions of a topic by its audit, judged instead of the engine. An audit
            counts where it has as many partitions as channels, and the engine is its main one.
        trace: Fingerprint of the trace, for the recommended plan.
        goal: Limits, and whether the frontier is asked for.
    """
    if isinstance(current, Plan):
        current.check_keys(frequencies_in(counted).key_type, "the count", "the current plan")
    capacities, windows = recipe.constraints.unequal, panes or CountedPanes()
    today = _today(engine, channels, recipe, current, frequencies_in(counted).key_type)
    spread, at_random = today.spread(counted), None
    if spread is not counted:
        if today.elsewhere is None:
            share = share_at_random(frequencies_in(counted), today.plan.hashing, today.plan.explicit)
            at_random = AtRandomLoad(share, today.name)
        windows = CountedPanes(
            tuple(replace(pane, frequencies=frequencies_in(today.spread(pane.frequencies))) for pane in windows.panes)
        )
    placement, measured = today.plan.partitioner(), None
    if isinstance(current, Audit) and today.elsewhere is not None and current.window_loads is not None:
        windows, measured = _as_measured(windows.panes, placement, current.window_loads)
    by_window = counted.sums.by_window if isinstance(counted, Population) and counted.sums is not None else None
    routed: Callable[[], Floats | None] | None = None
    if windows.routed is not None:
        routed = partial(windows.routed, today.plan) if by_window is None else partial(by_window, placement)
    verdict = judge(
        spread,
        placement,
        today.name,
        resources=recipe.resources,
        capacities=capacities,
        panes=windows.panes,
        routed=routed if measured is None else measured,
        goal=replace(
            goal or Goal(),
            rescaled=None if today.elsewhere is not None else partial(_at, today.plan),
            others={scheme.value: make_partitioner(scheme, channels) for scheme in (Scheme.UNIFORM, Scheme.CONSISTENT)},
        ),
    )
    hot = HotKeys.from_counts(frequencies_in(counted), () if panes is None else panes.panes)
    assumed = "" if today.elsewhere is not None else _assumed(today.plan.hashing, frequencies_in(counted))
    if verdict is None:
        return Answer(verdict, hot, at_random=at_random, assumed=assumed)
    if isinstance(current, Audit) and today.elsewhere is not None:
        further = _unified(current, frequencies_in(counted), () if panes is None else panes.panes, verdict)
        verdict = replace(verdict, remedies=(*verdict.remedies, *further))
    parent = current.content_hash() if isinstance(current, Plan) else None
    plan = recommended_plan(verdict, spread, recipe, today.plan, parent, trace)
    channels_loads = None if verdict.pins_nothing else _before_after(spread, recipe, today, plan, "recommended")
    return Answer(verdict, hot, channels_loads, plan, verdict.frontier, at_random, assumed=assumed)


def _unified(audit: Audit, frequencies: Frequencies, panes: Sequence[CountedPane], verdict: Verdict) -> list[Remedy]:
    """The placement of a topic with each of its partitioners alone, where there are several.

    Load without a fixed partition counts as spread evenly.
    """
    engines = [each for each in audit.producers if each.engines]
    tested = verdict.out_of_sample
    later = [] if tested is None else [pane.frequencies for pane in panes if pane.frequencies.total > 0][tested.past :]
    found = []
    for each in engines if len(audit.producers) > 1 else ():
        placed = make_partitioner(each.engines[0], audit.partitions, key_type=frequencies.key_type)

        def imbalance(counts: Frequencies, placed: Partitioner = placed) -> float:
            keys = counts.keys[: counts.real]
            own = np.where(keys.is_null().to_numpy(zero_copy_only=False), 0.0, counts.count_low[: counts.real])
            loads = np.bincount(placed.channels_of(keys), own, audit.partitions)
            return float(
                (loads + (counts.total - own.sum()) / audit.partitions).max() * audit.partitions / counts.total
            )

        remedy = Remedy(
            Way.PRODUCERS, workers=audit.partitions, imbalance=imbalance(frequencies), partitioner=each.name
        )
        if tested is not None:
            track = Track(tuple(map(imbalance, later)), 0.0)
            remedy = remedy.over(track, tested.today, len(later))
        found.append(remedy)
    return found


def _at(today: Plan, channels: int) -> Partitioner:
    """Today's hashing at another number of channels."""
    groups = today.max_parallelism if today.max_parallelism and today.max_parallelism >= channels else None
    none = ExplicitMap.from_mapping({}, today.key_type.storage)
    return replace(today, channels=channels, explicit=none, max_parallelism=groups).partitioner()


def _assumed(hashing: AnyScheme, frequencies: Frequencies) -> str:
    """How integer keys are taken to be sent to Kafka."""
    if (
        not isinstance(hashing, Engine)
        or hashing.target is not Target.KAFKA
        or frequencies.key_type is not KeyType.INT64
    ):
        return ""
    return (
        "Integer keys count as 8 bytes (LongSerializer); if producers send 4 bytes or text, ingest --key"
        ' "binary(int(KEY))" or "string(KEY)".'
    )


def judged_placement(audit: Audit, engine: AnyScheme, channels: int, current: Plan | None, *, is_given: bool) -> str:
    """Which placement of a topic's records is judged, as a sentence.

    Args:
        current: The plan that is judged, if any.
        is_given: Whether the engine was asked for.
    """
    if current is not None:
        return "Judged: the given plan, not the topic's partitions."
    if is_given:
        return f"Judged: the placement of {engine}, as given, not the topic's partitions."
    if audit.placement is None or audit.partitions != channels:
        return f"Judged: the placement of {engine} on {channels:,} partitions, as the topic has {audit.partitions:,}."
    return "Judged: the topic's partitions."


def planned(
    answer: Answer, counted: Counted, engine: AnyScheme, recipe: Recipe, plan: Plan, current: Plan | None = None
) -> Answer:
    """The answer with the channels before and after a given plan."""
    today = _today(engine, plan.channels, recipe, current, frequencies_in(counted).key_type)
    construction = f" ({plan.built_by})" if plan.built_by is not None else ""
    found = _before_after(today.spread(counted), recipe, today, plan, f"{plan.scheme}{construction}")
    return replace(answer, channels=found)


TOPIC = "the topic"
"""Name of the placement of a topic that no single partitioner explains."""


@dataclass(frozen=True, slots=True)
class _Today:
    """Today's placement."""

    plan: Plan
    name: str
    elsewhere: Elsewhere | None = None  # load that lies elsewhere; None where only load at random does

    def spread(self, counted: Counted) -> Counted:
        """Counted keys, with load that has no fixed channel, or another one, on stand-ins."""
        plan = self.plan
        if self.elsewhere is None:
            return spread_at_random(counted, plan.hashing, plan.channels, plan.explicit)
        return spread_elsewhere(counted, self.elsewhere)


def _today(engine: AnyScheme, channels: int, recipe: Recipe, current: Plan | Audit | None, key_type: KeyType) -> _Today:
    """The current plan, the partitions of the audit, or else the engine."""
    if not isinstance(current, Audit):
        return _Today(*today_of(engine, channels, recipe, current, key_type))
    if current.placement is None or (current.partitions, current.placement.hashing) != (channels, engine):
        return _Today(*today_of(engine, channels, recipe, None, key_type))
    return _Today(current.placement, engine.value if current.is_one_partitioner else TOPIC, current.elsewhere)


def _as_measured(panes: Sequence[CountedPane], today: Partitioner, loads: Floats) -> tuple[CountedPanes, Floats | None]:
    """Windows whose keys fit the true loads of their channels, and these loads; shape (channels, windows).

    Load of no key, or outside the main partition of its key, is the rest of its channel. A key that had less there in
    some window than in all of them is cut to what the channel really had.
    """
    if not panes:
        return CountedPanes(), None
    kept, measured = [], loads[:, : len(panes)].copy()
    for at, pane in enumerate(panes):
        counts, found = pane.frequencies, measured[:, at]
        known = float(found.sum())
        found *= counts.total / known if known else 0.0  # of rows without a partition, as the others lie
        keys = counts.keys[: counts.real]
        homes, own = today.channels_of(keys), counts.count_low[: counts.real].astype(np.float64)
        listed = np.bincount(homes, own, len(found))
        own *= np.minimum(1.0, found / np.where(listed > 0, listed, 1.0))[homes]
        cut = replace(counts, keys=keys, count_low=own, count_high=own, stand_ins=None, measured=())
        kept.append(replace(pane, frequencies=cut))
    return CountedPanes(tuple(kept)), measured


def _before_after(counted: Counted, recipe: Recipe, today: _Today, plan: Plan, planned: str) -> BeforeAfter | None:
    """Channels today and as the plan predicts; None if the plan has no predicted loads."""
    if not plan.predicted_loads:
        return None
    capacities: Floats | None = recipe.constraints.unequal
    before = over_average(counted, today.plan.partitioner(), recipe.resources, capacities)
    after = relative(plan.predicted_loads["network"], capacities)
    frequencies, is_linear = frequencies_in(counted), recipe.resources.network is ResourceFunction.LINEAR
    hot = _hot(frequencies, today.plan, plan) if is_linear and capacities is None and frequencies.total else ()
    return BeforeAfter.from_loads(today.name, before, planned, after, hot)


def _hot(frequencies: Frequencies, *plans: Plan) -> list[Floats]:
    """Load / mean load of each channel on the hottest keys, by plan."""
    keys, found = frequencies.keys[:MOST_KEYS], []
    for plan in plans:
        own = frequencies.count_low[: len(keys)] * (plan.channels / frequencies.total)
        loads = np.zeros(plan.channels)
        for key, channel, load in zip(keys.to_pylist(), plan.dealer().channels_of(keys), own, strict=True):
            places = plan.splits.get(key, (int(channel),))
            loads[list(places)] += load / len(places)
        found.append(loads)
    return found
