"""Options on how plans assign keys, for every scheme."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from adapt.cli.options import completion
from adapt.cli.options.groups import EXPERT, option, setting
from adapt.cli.options.loads import Loads, MeasureOption
from adapt.cli.options.named_keys import LimitOptions, Limits
from adapt.core.engines.names import BASES, CURRENT_SCHEMES, SCHEMES_BY_NAME, AnyScheme, Engine, hashing_of
from adapt.core.errors import UsageError, did_you_mean
from adapt.core.keys.names import HashName
from adapt.core.partitioning.schemes.names import DEFAULT_CONSTRUCTION, Construction, Scheme, UtilityName

_MOST_REPLICAS = 100_000
"""Most virtual nodes of a channel: 2.4 MB each."""

ENGINES = (
    "One of spark, flink, kafka (the Java client), librdkafka[:PARTITIONER], sarama, kinesis[:SHARDS.json],"
    " pulsar[:HASHING], risingwave, flink-sql, uniform, consistent."
)
"""What `--engine` may be."""

if TYPE_CHECKING:
    from adapt.core.counting.frequencies import Frequencies
    from adapt.core.partitioning.build import Recipe
    from adapt.core.partitioning.measures.resources import Resources
    from adapt.core.partitioning.plans.plan import Plan

    SchemeChoice: TypeAlias = AnyScheme
    CurrentSchemeChoice: TypeAlias = AnyScheme
    BaseChoice: TypeAlias = AnyScheme
else:  # their parsers take values; typer cannot choose from a union
    SchemeChoice = CurrentSchemeChoice = BaseChoice = Any


def among(known: Iterable[AnyScheme], *, own: bool = False) -> dict[str, Any]:
    """Settings of an option that names one of these schemes.

    Args:
        own: Whether it takes users' own schemes too, by name.
    """
    choices = tuple(known)

    def parse(name: str) -> AnyScheme | str:
        from adapt.traces.own.modules import is_own
        from adapt.traces.scheme_names import scheme_named

        found = name if isinstance(name, Scheme | Engine) else scheme_named(name, choices)
        if found is None and own and is_own("scheme", name):
            return name
        if found is None:
            names = {part for each in choices for part in (each.value, each.value.partition(":")[0])}
            raise ValueError(f"has no choice {name!r}{did_you_mean(name, names)}")
        return found

    return {"parser": parse, "completion": completion.of_schemes(choices)}


SCHEME = among(SCHEMES_BY_NAME.values())
"""Any scheme."""

OWN_SCHEME = among(SCHEMES_BY_NAME.values(), own=True)
"""Any scheme, or a user's own."""

ENGINE = among(Engine)
"""Engines."""

CURRENT = among(CURRENT_SCHEMES)
"""What may place keys today."""

BASE = among(BASES)
"""What may place the keys that are not pinned."""

BaseOption: TypeAlias = Annotated[
    BaseChoice | None,
    option(
        "Scheme of the keys that hybrid does not pin. Default: that of the current plan, else that of --engine;"
        " consistent with --hash or several channel counts.",
        "NAME",
        panel=EXPERT,
        **BASE,
    ),
]

EngineOption: TypeAlias = Annotated[
    CurrentSchemeChoice, option(f"Engine that assigns the keys today. {ENGINES}", "NAME", **CURRENT)
]
UtilityOption: TypeAlias = Annotated[
    UtilityName | None,
    option(
        "How imbalance and migration are weighed against each other. BTM is b (1 + m), over all keys. Default: APM;"
        " construction level has none.",
        panel=EXPERT,
    ),
]
HashOption: TypeAlias = Annotated[HashName, option("Hash function of the keys.", panel=EXPERT)]
ReplicasOption: TypeAlias = Annotated[
    int | None,
    option(
        "Virtual nodes of each channel on the hash ring. Default: those of the current plan, else 1000.",
        "N",
        panel=EXPERT,
        min=1,
        max=_MOST_REPLICAS,
    ),
]
WholeLoadOption: TypeAlias = Annotated[
    bool,
    option(
        "Let scan, redist and readj balance the load of hashed keys too, as level does. Eq. 19 counts pinned keys"
        " alone; utility BTM counts all.",
        None,
        "--whole-load",
        panel=EXPERT,
    ),
]
MaxParallelismOption: TypeAlias = Annotated[
    int | None, option("Number of key groups (Flink's max parallelism). Default: Flink's own.", "N", panel=EXPERT)
]


@dataclass(frozen=True, slots=True)
class Placement:
    """How keys are assigned: loads, utility, hash, limits."""

    PANEL = EXPERT
    loads: Loads = field(default_factory=Loads)
    measure: MeasureOption = None
    utility: UtilityOption = None
    hash: Annotated[HashName | None, option("Hash function of the keys. Default: murmur3.", panel=EXPERT)] = None
    limits: LimitOptions = field(default_factory=LimitOptions)
    max_moves: int | None = setting(
        None, "How often construction readj may move each key. Default: unlimited.", "N", min=1
    )
    max_parallelism: MaxParallelismOption = None
    base: BaseOption = None
    replicas: ReplicasOption = None
    whole_load: WholeLoadOption = False

    def weighed(self) -> "Resources":
        """The loads and tolerances, checked."""
        return self.loads.weighed(self.measure)

    def recipe(
        self,
        limits: Limits,
        frequencies: "Frequencies",
        scheme: AnyScheme | str = Scheme.HYBRID,
        construction: Construction = DEFAULT_CONSTRUCTION,
        today: AnyScheme = Scheme.CONSISTENT,
        before: "Plan | None" = None,
    ) -> "Recipe":
        """How partitioners are built, with keys of the counted type.

        Args:
            scheme: A scheme, or the name of a user's own.
            today: The base, if none is given; not an engine if a hash or replicas are given, which engines do not use.
            before: The current plan, whose replicas are kept.

        Raises:
            BadInput: a named key has another type, or was not counted.
            UsageError: a base is given that the scheme does not support, or that has a hash of its own next to one.
        """
        from adapt.core.partitioning.build import Recipe
        from adapt.core.partitioning.schemes.consistent import DEFAULT_REPLICAS
        from adapt.traces.own.modules import own_codes

        own = None
        if not isinstance(scheme, Scheme | Engine):
            (own,), scheme = own_codes("scheme", [(scheme, {})]), Scheme.HYBRID
        check_base(self.base, scheme)
        if self.hash and isinstance(self.base, Engine):
            raise UsageError(f"--base {self.base} has a hash of its own; omit --hash, or use another base")
        on_ring = self.hash or self.replicas is not None
        base = self.base or (Scheme.CONSISTENT if on_ring and isinstance(today, Engine) else today)
        replicas = self.replicas
        if replicas is not None:
            check_replicas(scheme, base)
        elif before is not None and isinstance(before.replicas, int):
            replicas = before.replicas
        return Recipe(
            scheme,
            construction,
            self.weighed(),
            self.utility,
            self.loads.max_pins,
            self.hash or HashName.MURMUR3,
            max_moves=self.max_moves,
            max_parallelism=self.max_parallelism,
            constraints=limits.constraints(frequencies),
            pin_only=limits.pin_only(frequencies),
            base=base,
            replicas=replicas or DEFAULT_REPLICAS,
            whole_load=self.whole_load,
            own=own,
        )


def check_replicas(scheme: AnyScheme, base: AnyScheme) -> None:
    """Refuse replicas that the scheme would ignore.

    Raises:
        UsageError: keys that are not pinned are not on a ring.
    """
    hashing = hashing_of(scheme, base)
    if hashing is not Scheme.CONSISTENT:
        raise UsageError(f"--replicas are those of a hash ring, but {hashing} has none; omit it, or use consistent")


def check_base(base: AnyScheme | None, scheme: AnyScheme) -> None:
    """Refuse a base that the scheme would ignore.

    Raises:
        UsageError: one is given, and the scheme is not hybrid.
    """
    if base is not None and scheme is not Scheme.HYBRID:
        raise UsageError(f"scheme {scheme} does not support --base; use --scheme hybrid")
