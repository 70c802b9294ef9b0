"""Plan: a partitioner as data, with its predictions and parameters."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Any, TypeVar

import pyarrow as pa

from adapt.core.engines.kinesis.scheme import shard_starts
from adapt.core.engines.names import (
    BASES,
    SCHEMES_BY_NAME,
    AnyScheme,
    Engine,
    hashing_of,
    name_in_plans,
    shards_of,
)
from adapt.core.engines.registry import key_groups_of
from adapt.core.errors import BadInput, did_you_mean, listed
from adapt.core.keys.columns import key_type_of, one_array
from adapt.core.keys.hashes import HASHES
from adapt.core.keys.key_text import key_to_text, keys_from_texts
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import Partitioner
from adapt.core.metrics import RENAMED
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.partitioning.schemes.consistent import DEFAULT_REPLICAS
from adapt.core.partitioning.schemes.explicit import ExplicitMap, explicit_data, explicit_json, refuse_out_of_range
from adapt.core.partitioning.schemes.names import MAPPED_SCHEMES, Construction, Scheme
from adapt.core.partitioning.schemes.split_map import SplitMap, SplitPartitioner
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.phrases import counted
from adapt.core.stream import KeyType
from adapt.core.table import Tabular

Data = Mapping[str, Any]
Name = TypeVar("Name", bound=StrEnum)

_MEANT = {str: "text", int: "a whole number", list: "a list", Mapping: "an object"}
_REQUIRED = object()


@contextmanager
def naming_field(name: str) -> Iterator[None]:
    """Put the field's name before every error raised within."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"plan field {name!r}: {error}") from error


def read_field(data: Data, name: str, kind: type, default: Any = _REQUIRED) -> Any:
    """A field of type `kind`, or `default` if missing or null."""
    value = data.get(name)
    with naming_field(name):
        if value is None and default is _REQUIRED:
            raise BadInput("missing")
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise BadInput(f"must be {_MEANT[kind]} (got {value!r})")
    return default if value is None else value


def read_positive(data: Data, name: str, default: Any = _REQUIRED) -> int:
    """A whole number from 1 to 2^31 - 1."""
    value: int = read_field(data, name, int, default)
    with naming_field(name):
        if not 1 <= value < 2**31:
            raise BadInput(f"must be from 1 to 2147483647 (got {value})")
    return value


def read_name(data: Data, name: str, names: Iterable[Name]) -> Name:
    """One of a set of names."""
    value, known = read_field(data, name, str), {each.value: each for each in names}
    with naming_field(name):
        if value not in known:
            raise BadInput(f"unknown {value!r}{did_you_mean(value, known)}")
    return known[value]


def read_key_type(data: Data) -> KeyType:
    """The type of the keys, also one with parameters."""
    try:
        return KeyType(read_field(data, "key_type", str))
    except ValueError:
        return read_name(data, "key_type", KeyType)


def read_explicit(data: Data, key_type: KeyType, channels: int) -> ExplicitMap:
    """The pinned keys of fields `explicit` and `explicit_null`."""
    texts = read_field(data, "explicit", Mapping)
    null = read_field(data, "explicit_null", int, None)
    with naming_field("explicit"):
        keys, owners = keys_from_texts(texts, key_type), list(texts.values())
        for text, owner in texts.items():
            if not isinstance(owner, int) or isinstance(owner, bool):
                raise BadInput(f"key {text!r} must have a whole number as worker (got {owner!r})")
        refuse_out_of_range(keys, owners, channels)
    with naming_field("explicit_null"):
        if null is not None:
            keys, owners = pa.concat_arrays([keys, pa.nulls(1, keys.type)]), [*owners, null]
        refuse_out_of_range(keys, owners, channels)
    with naming_field("explicit"):
        return ExplicitMap(keys, owners)


def read_splits(data: Data, key_type: KeyType, channels: int) -> SplitMap:
    """The split keys of field `split`; none if it is missing."""
    texts = read_field(data, "split", Mapping, {})
    with naming_field("split"):
        for text, owners in texts.items():
            if not isinstance(owners, list) or any(type(owner) is not int for owner in owners):
                raise BadInput(f"key {text!r} must have a list of workers (got {owners!r})")
        splits = SplitMap(
            dict(zip(keys_from_texts(texts, key_type).to_pylist(), map(tuple, texts.values()), strict=True)), key_type
        )
        refuse_out_of_range(splits.keys_of_places, splits.channels, channels)
        return splits


def read_explicit_table(table: pa.Table, key_type: KeyType, channels: int) -> ExplicitMap:
    """The pinned keys of a side table with columns `key` and `channel`."""
    with naming_field("explicit"):
        if not {"key", "channel"} <= set(table.column_names):
            raise BadInput(f"its table needs columns 'key' and 'channel' (got {listed(table.column_names)})")
        keys, owners = one_array(table["key"]), table["channel"]
        if not pa.types.is_integer(owners.type) or owners.null_count:
            raise BadInput(
                f"the workers of its table must be whole numbers (got {owners.type} with {owners.null_count} nulls)"
            )
        try:
            found = key_type_of(keys.type)
        except ValueError as error:
            raise BadInput(str(error)) from error
        if found is not key_type.storage:
            raise BadInput(f"its table has {found} keys, but the plan has {key_type} keys")
        refuse_out_of_range(keys, owners.to_numpy(), channels)
        return ExplicitMap(keys, owners.to_numpy())


SCHEMA = "adapt.plan/1"
"""The format; readers refuse versions that they do not know."""

BASED_SCHEMA = "adapt.plan/2"
"""The format of plans over another base than the ring, which readers of the first version would misplace."""

SPLIT_SCHEMA = "adapt.plan/3"
"""The format of plans with split keys, which readers of earlier versions would keep whole."""


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Tabular):
    """A partitioner as data, with its predicted loads and metrics.

    Attributes:
        channels: N, from 1.
        key_type: The type of the keys in their source for an engine, which hashes the same value differently as
            another type; else that of their column.
        construction: How pinned keys were assigned; None in other schemes than hybrid.
        hash: The hash function; its seed is fixed. Ignored, and murmur3, where an engine hashes, which has its own.
        replicas: Of each channel on the ring; ignored without a ring.
        explicit: Pinned keys with their channels; empty in a scheme that pins no keys.
        max_parallelism: Number of key groups, in a scheme or base that has them. Default: Flink's default.
        base: The scheme of the keys that are not pinned, in the hybrid scheme; the others ignore it.
        splits: Split keys with their channels; the records of such a key take turns.
        trace: Fingerprint of the trace it was built for.
        parent: Content hash of the plan it follows.
        predicted_loads: Predicted load of each channel, by resource; JSON data.
        metrics: Predicted metrics by the names of docs/theory.md; JSON data.
        parameters: How it was built; JSON data.

    Source: docs/plan-format.md.
    """

    scheme: AnyScheme
    channels: int
    key_type: KeyType
    construction: Construction | None = None
    hash: HashName = HashName.MURMUR3
    replicas: int = DEFAULT_REPLICAS
    explicit: ExplicitMap = field(default_factory=lambda: ExplicitMap.from_mapping({}))
    max_parallelism: int | None = None
    base: AnyScheme = Scheme.CONSISTENT
    splits: SplitMap = field(default_factory=lambda: SplitMap({}, KeyType.STRING))
    trace: str | None = None
    parent: str | None = None
    predicted_loads: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Accept any mappings of keys, and keep them as maps of `key_type`."""
        if not isinstance(self.hashing, Engine):
            object.__setattr__(self, "key_type", self.key_type.storage)
        object.__setattr__(self, "explicit", ExplicitMap.from_mapping(self.explicit, self.key_type.storage))
        refuse_out_of_range(self.explicit.column, self.explicit.channels, self.channels)
        object.__setattr__(self, "splits", SplitMap(self.splits, self.key_type))
        self.splits.refuse_pinned(self.explicit)
        refuse_out_of_range(self.splits.keys_of_places, self.splits.channels, self.channels)
        if self.scheme is not Scheme.HYBRID:
            object.__setattr__(self, "base", Scheme.CONSISTENT)
        if isinstance(self.hashing, Engine):
            object.__setattr__(self, "hash", HashName.MURMUR3)
        limits = key_groups_of(self.hashing)
        if limits is None or self.max_parallelism is None:
            object.__setattr__(self, "max_parallelism", limits and limits.default(self.channels))

    @property
    def hashing(self) -> AnyScheme:
        """The scheme of the keys that are not pinned."""
        return hashing_of(self.scheme, self.base)

    @property
    def built_by(self) -> str | None:
        """Name of the construction, or of the user's function, that pinned keys."""
        if self.construction is not None:
            return self.construction.value
        own = self.parameters.get("own_scheme")
        return f"{own['module']}:{own['name']}" if isinstance(own, Mapping) else None

    @property
    def is_based(self) -> bool:
        """Whether its base is another than the ring."""
        return self.base is not Scheme.CONSISTENT

    def fits(self, key_type: KeyType) -> bool:
        """Whether the plan places keys of a type.

        Engines tell types apart that columns hold alike.
        """
        if isinstance(self.hashing, Engine):
            return key_type is self.key_type
        return key_type.storage is self.key_type.storage

    def check_keys(self, key_type: KeyType, source: object, name: object = "the plan") -> None:
        """Refuse a source with keys that the plan does not place."""
        if not self.fits(key_type):
            raise BadInput(
                f"{name} is for {self.key_type} keys, but {source} has {key_type} keys; build a plan for those, or give"
                f" a source of {self.key_type} keys (of a CSV, --key-type says so)"
            )

    def partitioner(self) -> Partitioner:
        """A new partitioner of this plan.

        Raises:
            BadInput: the plan splits keys, which have no channel of their own.
        """
        if self.splits:
            raise BadInput(
                f"the plan splits {counted(len(self.splits), 'key')}, whose records take turns on several workers;"
                " measure it with `adapt partition evaluate`, or export it --to rekey"
            )
        return self._of_whole_keys()

    def dealer(self) -> Partitioner:
        """A new partitioner that deals the records of split keys."""
        whole = self._of_whole_keys()
        return SplitPartitioner(self.splits, whole) if self.splits else whole

    def _of_whole_keys(self) -> Partitioner:
        return make_partitioner(
            *(self.scheme, self.channels, self.hash, self.replicas, self.explicit, self.max_parallelism, self.base),
            key_type=self.key_type,
        )

    def to_arrow(self) -> pa.Table:
        """The pinned keys in key order.

        Columns `key` of the plan's key type, and `channel` int32.
        """
        return pa.table({"key": self.explicit.column, "channel": pa.array(self.explicit.channels)})

    def __repr__(self) -> str:
        base = f" over {self.base}" if self.is_based else ""
        split = f", {len(self.splits):,} split keys" if self.splits else ""
        imbalance = self.metrics.get("imbalance")
        expected = "" if imbalance is None else f", imbalance {imbalance:.3f} predicted"
        return (
            f"Plan({self.scheme}{base}, {self.channels} workers, {len(self.explicit):,} pinned keys{split}{expected})"
        )

    def content_hash(self) -> str:
        """SHA-256 in hex of the mapping and the parameters.

        Equal plans have equal hashes wherever and whenever they are built: neither times nor predictions count.
        """
        decisive = {**_mapping_to_data(self, {}), "parameters": self.parameters}
        canonical = json.dumps(decisive, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        # The first match is the field itself: the fields before it, in this order, contain no user text.
        before, field_name, after = canonical.encode().partition(b'"explicit":')
        return sha256(before + field_name + explicit_json(self.explicit) + after.removeprefix(b"{}")).hexdigest()


def plan_to_data(plan: Plan, *, with_explicit: bool = True) -> dict[str, Any]:
    """The plan as JSON data.

    `explicit` is an object of key text to channel: strings as they are, integers in decimal, bytes in hex. The channel
    of the null key, which has no text, is in `explicit_null`.

    Args:
        with_explicit: Without it `explicit` is null, for readers of the table of pinned keys.
    """
    schema = SPLIT_SCHEMA if plan.splits else BASED_SCHEMA if plan.is_based else SCHEMA
    data = {"schema": schema, **_mapping_to_data(plan, explicit_data(plan.explicit) if with_explicit else None)}
    if not with_explicit:
        data["explicit_null"] = None
    data |= {"trace": plan.trace, "parent": plan.parent, "predicted_loads": dict(plan.predicted_loads)}
    return data | {"metrics": dict(plan.metrics), "parameters": dict(plan.parameters)}


def plan_from_data(data: Mapping[str, Any], explicit: pa.Table | None = None) -> Plan:
    """Read the data of `plan_to_data`; unknown fields are ignored.

    Args:
        explicit: The pinned keys (`explicit_table`), in place of those in `data`.
    """
    _check_schema(read_field(data, "schema", str))
    _refuse_splitting(data)
    scheme = read_name(data, "scheme", SCHEMES_BY_NAME.values())
    base = Scheme.CONSISTENT if data.get("base") is None else read_name(data, "base", BASES)
    if base is not Scheme.CONSISTENT and scheme is not Scheme.HYBRID:
        raise BadInput(f"plan field 'base': given, but scheme {scheme} has no choice of base")
    channels = read_positive(data, "channels")
    scheme, base = _over_shards(data, scheme, base, channels)
    hashing = hashing_of(scheme, base)
    key_type = read_key_type(data)
    tracked = (
        read_explicit(data, key_type, channels)
        if explicit is None
        else read_explicit_table(explicit, key_type, channels)
    )
    if tracked and scheme not in MAPPED_SCHEMES:
        raise BadInput(f"plan field 'explicit': pins {counted(len(tracked), 'key')}, but scheme {scheme} pins no keys")
    return Plan(
        scheme=scheme,
        channels=channels,
        key_type=key_type,
        construction=None if data.get("construction") is None else read_name(data, "construction", Construction),
        hash=HashName.MURMUR3 if isinstance(hashing, Engine) else _hash_from_data(read_field(data, "hash", Mapping)),
        replicas=read_positive(data, "replicas", DEFAULT_REPLICAS),
        explicit=tracked,
        max_parallelism=_groups_from_data(data, hashing, channels),
        base=base,
        splits=read_splits(data, key_type, channels),
        trace=read_field(data, "trace", str, None),
        parent=read_field(data, "parent", str, None),
        predicted_loads=read_field(data, "predicted_loads", Mapping, {}),
        metrics={RENAMED.get(name, name): value for name, value in read_field(data, "metrics", Mapping, {}).items()},
        parameters=read_field(data, "parameters", Mapping, {}),
    )


def _mapping_to_data(plan: Plan, explicit: Mapping[str, int] | None) -> dict[str, Any]:
    """The fields that define the mapping, with this explicit map."""
    split = {key_to_text(key): [*places] for key, places in plan.splits.items() if key is not None}
    return {
        "scheme": name_in_plans(plan.scheme),
        **({"base": name_in_plans(plan.base)} if plan.is_based else {}),
        **({"shards": [str(start) for start in shards_of(plan.hashing)]} if shards_of(plan.hashing) else {}),
        "construction": plan.construction and plan.construction.value,
        "channels": plan.channels,
        "key_type": plan.key_type.value,
        "hash": _hash_to_data(plan),
        "replicas": plan.replicas if plan.hashing is Scheme.CONSISTENT else None,
        **({"max_parallelism": plan.max_parallelism} if plan.max_parallelism is not None else {}),
        "explicit": explicit,
        "explicit_null": plan.explicit.of_null,
        **({"split": split} if split else {}),
    }


def _over_shards(
    data: Mapping[str, Any], scheme: AnyScheme, base: AnyScheme, channels: int
) -> tuple[AnyScheme, AnyScheme]:
    """The scheme and the base, of which one is Kinesis over the shards of the plan if it has any."""
    given = read_field(data, "shards", list, None)
    if given is None:
        return scheme, base
    if hashing_of(scheme, base) is not Engine.KINESIS:
        raise BadInput(f"plan field 'shards': given, but scheme {hashing_of(scheme, base)} has no shards")
    with naming_field("shards"):
        starts = shard_starts(given, channels)
    over = Engine.kinesis_over(starts)
    return (scheme, over) if scheme is Scheme.HYBRID else (over, base)


def _check_schema(schema: str) -> None:
    family, _, version = schema.partition("/")
    if f"{family}/{version.partition('.')[0]}" not in (SCHEMA, BASED_SCHEMA, SPLIT_SCHEMA):
        raise BadInput(
            f"plan field 'schema': must be {SCHEMA!r}, {BASED_SCHEMA!r} or {SPLIT_SCHEMA!r} (got {schema!r})"
        )


def _refuse_splitting(data: Mapping[str, Any]) -> None:
    scheme = data.get("scheme")
    if scheme in list(Splitting):
        raise BadInput(
            f"plan field 'scheme': {scheme} splits keys by current load, which a plan cannot describe; use a scheme"
            " that keeps keys whole, such as --scheme hybrid"
        )


def _hash_to_data(plan: Plan) -> dict[str, Any] | None:
    """The hash of the plan; None where an engine hashes, which has its own."""
    return None if isinstance(plan.hashing, Engine) else {"name": plan.hash.value, "seed": HASHES[plan.hash].seed}


def _groups_from_data(data: Mapping[str, Any], scheme: AnyScheme, channels: int) -> int | None:
    """The number of key groups; None in a scheme without them."""
    limits = key_groups_of(scheme)
    if limits is None:
        return None
    groups, most = read_positive(data, "max_parallelism"), limits.most
    if not channels <= groups <= most:
        raise BadInput(
            f"plan field 'max_parallelism': must be from {channels}, the number of workers, to {most} (got {groups})"
        )
    return groups


def _hash_from_data(data: Mapping[str, Any]) -> HashName:
    within = {f"hash.{name}": value for name, value in data.items()}
    name = read_name(within, "hash.name", HashName)
    seed = read_field(within, "hash.seed", int)
    if seed != HASHES[name].seed:
        raise BadInput(f"plan field 'hash.seed': must be {HASHES[name].seed}, the seed of {name} (got {seed})")
    return name
