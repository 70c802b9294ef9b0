"""Find the partitioners that explain a topic, and today's placement."""

from collections.abc import Sequence
from contextlib import suppress
from math import sqrt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.audit.audit import Audit, Producer
from adapt.core.audit.deviations import deviations
from adapt.core.audit.mixture import Kind, mixture_of
from adapt.core.audit.observed import KeyPartitions
from adapt.core.engines.names import Engine
from adapt.core.engines.placement import WIDTHS
from adapt.core.engines.registry import definition_of
from adapt.core.errors import UsageError
from adapt.core.keys.partitioner import AtRandom, random_keys
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.problem.at_random import Elsewhere
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import KeyType

_TITLES = {
    **dict.fromkeys((Engine.KAFKA, Engine.LIBRDKAFKA_MURMUR2, Engine.LIBRDKAFKA_MURMUR2_RANDOM), "Java's murmur2"),
    **dict.fromkeys((Engine.LIBRDKAFKA, Engine.LIBRDKAFKA_CONSISTENT), "librdkafka's CRC32"),
    **dict.fromkeys((Engine.LIBRDKAFKA_FNV1A, Engine.LIBRDKAFKA_FNV1A_RANDOM, Engine.SARAMA), "Sarama's FNV-1a"),
}
OTHERS = {
    Kind.AT_RANDOM: ("partitions at random", (Engine.LIBRDKAFKA_RANDOM,)),
    Kind.CUSTOM: ("a custom partitioner", ()),
    Kind.EITHER: ("partitions at random or a custom partitioner", ()),
}

_UNKNOWN = {name for name, engines in OTHERS.values()}

_FEW_ERRORS = 3.0
"""Standard errors by which a deviation has to beat chance to be looked at."""


def audit_of(seen: KeyPartitions, channels: int, listed: pa.Array) -> Audit:
    """Audit the records of a topic by key and partition.

    Args:
        channels: Partitions that the topic is said to have. It has others if it uses more, or if as many as it uses
            explain more of its records.
        listed: Keys whose place is part of today's placement.
    """
    plain = seen.of_keys(seen.is_plain)
    counts = dict.fromkeys((len(seen.loads), max(channels, len(seen.loads))))
    found = [(partitions, _producers(seen, plain, partitions)) for partitions in counts]
    partitions, producers = max(
        found, key=lambda each: sum(part.share.share for part in each[1] if part.name not in _UNKNOWN)
    )
    cells = np.bincount(seen.key, minlength=len(seen.keys))
    weights = seen.records * seen.stands_for[seen.key]
    is_empty = ~seen.is_plain & seen.keys.is_valid().to_numpy(zero_copy_only=False)
    loads = np.append(seen.loads, np.zeros(partitions - len(seen.loads))) / seen.loads.sum()
    engine = producers[0].engines[0] if producers and producers[0].engines else Engine.KAFKA
    placement, elsewhere = _placed(
        seen.of_keys(pc.is_in(seen.keys, value_set=listed).to_numpy(False)), engine, partitions
    )
    return Audit(
        partitions,
        int(seen.loads.sum()),
        float(weights[seen.is_plain[seen.key]].sum() / weights.sum()),
        float(weights[is_empty[seen.key]].sum() / weights.sum()),
        producers,
        round(float(plain.stands_for.sum())),
        round(float(seen.stands_for[seen.is_plain & (cells > 1)].sum())),
        tuple(loads.tolist()),
        placement,
        elsewhere,
    )


def _producers(seen: KeyPartitions, plain: KeyPartitions, partitions: int) -> tuple[Producer, ...]:
    """The partitioners of the records with a key, over this many partitions, largest share first."""
    if not len(plain.keys) or partitions == 1:
        return ()
    alike: dict[bytes, list[Engine]] = {}
    for engine in Engine:
        if definition_of(engine).at_random is not AtRandom.ALL:
            with suppress(UsageError):  # it has fewer partitions at most, or no placement of such keys
                alike.setdefault(plain.homes(engine, partitions).tobytes(), []).append(engine)
    placed = [np.frombuffer(each, np.int64) for each in alike]
    names = [_title(engines, plain.key_type) for engines in alike.values()]
    mixture = mixture_of(plain, placed, partitions)
    if mixture.others:
        others = _promising(plain, set(alike), partitions)
        placed, names = placed + [each for _, each in others], names + [name for name, _ in others]
        mixture = mixture_of(plain, placed, partitions, len(alike)) if others else mixture
    engines = [_as_seen(each, seen, partitions) for each in alike.values()]
    hashed = [
        Producer(names[at], engines[at] if at < len(engines) else (), share) for at, share in mixture.hashed.items()
    ]
    unknown = [Producer(*OTHERS[kind], share) for kind, share in mixture.others.items()]
    return tuple(sorted((*hashed, *unknown), key=lambda each: -each.share.share))


def _promising(plain: KeyPartitions, known: set[bytes], partitions: int) -> list[tuple[str, NDArray[np.int64]]]:
    """Deviations that place far more keys right than chance would, and unlike any known partitioner."""
    found: dict[bytes, tuple[str, NDArray[np.int64]]] = {}
    first = plain.partition[plain.starts]
    chance, keys = 1 / partitions, len(first)
    for name, placed in deviations(plain.keys, partitions):
        excess = float((placed == first).mean()) - chance
        if excess * keys > _FEW_ERRORS * sqrt(keys * chance * (1 - chance)) and placed.tobytes() not in known:
            found.setdefault(placed.tobytes(), (name, placed))
    return list(found.values())


def _title(alike: Sequence[Engine], key_type: KeyType) -> str:
    """What partitioners that place keys alike are called, with the encoding of integers."""
    sent = ""
    if key_type.storage is KeyType.INT64:
        sent = f" of {WIDTHS[key_type]}-byte integers" if key_type in WIDTHS else " of numbers as text"
    titles = (_TITLES[engine] + sent if engine in _TITLES else engine.value for engine in alike)
    return " or ".join(dict.fromkeys(titles))


def _as_seen(alike: Sequence[Engine], seen: KeyPartitions, partitions: int) -> tuple[Engine, ...]:
    """The engines, first those that place null and empty keys as seen: at random in several partitions, else hashed."""

    def fits(engine: Engine) -> bool:
        definition = definition_of(engine)
        own = seen.of_keys(random_keys(definition.at_random, seen.keys))
        hashed = seen.of_keys(~seen.is_plain & ~random_keys(definition.at_random, seen.keys))
        strays = len(set(own.partition.tolist())) == 1 and own.records.sum() > partitions
        return not strays and bool((hashed.homes(engine, partitions)[hashed.key] == hashed.partition).all())

    return tuple(sorted(alike, key=lambda engine: not fits(engine)))


def _placed(seen: KeyPartitions, engine: Engine, partitions: int) -> tuple[Plan, Elsewhere]:
    """Today's placement of some keys: each in its main partition, with what lies elsewhere."""
    at_random = random_keys(definition_of(engine).at_random, seen.keys)
    homes = seen.homes(engine, partitions)
    is_home = seen.partition == homes[seen.key]
    first = np.lexsort((~is_home, -seen.records, seen.key))[
        np.searchsorted(np.sort(seen.key), np.arange(len(seen.keys)))
    ]
    main = np.where(at_random, homes, seen.partition[first])
    moved = np.flatnonzero(main != homes)
    pinned = ExplicitMap(seen.keys.take(pa.array(moved)), main[moved])
    plan = Plan(Scheme.HYBRID, partitions, seen.key_type, base=engine, explicit=pinned)
    away = (seen.partition != main[seen.key]) | at_random[seen.key]
    shares = seen.records / np.maximum(np.bincount(seen.key, seen.records, len(seen.keys)), 1)[seen.key]
    return plan, Elsewhere(engine, partitions, seen.keys, seen.key[away], seen.partition[away], shares[away])
