"""Options on how plans assign keys, for every scheme."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from adapt.cli.options import completion
from adapt.cli.options.groups import option, setting
from adapt.cli.options.loads import Loads
from adapt.cli.options.named_keys import LimitOptions, Limits
from adapt.core.engines.names import CURRENT_SCHEMES, SCHEMES_BY_NAME, AnyScheme, Engine
from adapt.core.errors import did_you_mean
from adapt.core.keys.names import HashName
from adapt.core.partitioning.measures.plan_settings import EXPERT, PlanSettings
from adapt.core.partitioning.schemes.names import DEFAULT_CONSTRUCTION, Construction, Scheme, UtilityName
from adapt.core.units.settings import same, settings

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
else:  # their parsers take values; typer cannot choose from a union
    SchemeChoice = CurrentSchemeChoice = Any


def among(known: Iterable[AnyScheme], *, own: bool = False) -> dict[str, Any]:
    """Settings of an option that names one of these schemes.

    Args:
        own: Whether it takes users' own schemes too, and the cap of bounded, by name.
    """
    choices = tuple(known)

    def parse(name: str) -> AnyScheme | str:
        from adapt.traces.own.modules import is_own
        from adapt.traces.scheme_names import scheme_named, split_cap

        if own and split_cap(name)[1] is not None:
            return name
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

OWN_HASHING = f"--scheme {'|'.join(Scheme)}"
"""Schemes of ours, not of an engine."""

EngineOption: TypeAlias = Annotated[
    CurrentSchemeChoice, option(f"Engine that assigns the keys today. {ENGINES}", "NAME", **CURRENT)
]
UtilityOption: TypeAlias = Annotated[
    UtilityName | None,
    option(
        "How imbalance and migration are weighed against each other. Default: APM; construction level has none.",
        panel=EXPERT,
        needs=("--scheme hybrid", "--construction scan|redist|readj|readj-printed|unlocked"),
    ),
]
MaxParallelismOption: TypeAlias = Annotated[
    int | None, option("Number of key groups (Flink's max parallelism). Default: Flink's own.", "N", panel=EXPERT)
]


@dataclass(frozen=True, slots=True)
class Today:
    """What assigns the keys today, with its parameters."""

    OPTION: ClassVar[str] = "--engine"
    HEAD: ClassVar[str] = "engine"
    HEADS: ClassVar[tuple[str, ...]] = CURRENT_SCHEMES
    HELP: ClassVar[str] = f"Engine that assigns the keys today. {ENGINES} Default: spark."
    engine: EngineOption = Engine.SPARK
    max_parallelism: int | None = setting(
        None, "Number of key groups. Default: Flink's own.", "N", of=(Engine.FLINK, Engine.FLINK_SQL), min=1
    )
    replicas: int | None = setting(
        None,
        "Virtual nodes of each worker on the hash ring. Default: those of the current plan, else 1000.",
        "N",
        of=(Scheme.CONSISTENT,),
        min=1,
        max=_MOST_REPLICAS,
    )
    hash: HashName | None = setting(
        None, "Hash function of the keys. Default: murmur3.", of=(Scheme.CONSISTENT, Scheme.UNIFORM)
    )


@settings(panel=EXPERT)
class Placement:
    """How keys are assigned: loads, utility, limits."""

    loads: Loads = field(default_factory=Loads)
    measure: list[str] | None = same(PlanSettings, "measure")
    utility: UtilityOption = None
    limits: LimitOptions = field(default_factory=LimitOptions)

    def weighed(self) -> "Resources":
        """The loads and tolerances, checked."""
        return self.loads.weighed(self.measure)

    def recipe(
        self,
        limits: Limits,
        frequencies: "Frequencies",
        today: Today,
        scheme: AnyScheme | str = Scheme.HYBRID,
        construction: Construction = DEFAULT_CONSTRUCTION,
        base: AnyScheme | None = None,
        before: "Plan | None" = None,
        cap: float | None = None,
    ) -> "Recipe":
        """How partitioners are built, with keys of the counted type.

        Args:
            scheme: A scheme, or the name of a user's own, or of bounded with its cap.
            base: The scheme of the keys that are not pinned. Default: that of the current plan, else of today.
            before: The current plan, whose hash and replicas are kept.
            cap: That of bounded, if it is not in its name.
        """
        from adapt.core.partitioning.build import Recipe
        from adapt.core.partitioning.from_counts.bounded import USUAL
        from adapt.core.partitioning.schemes.consistent import DEFAULT_REPLICAS
        from adapt.traces.own.modules import own_codes
        from adapt.traces.scheme_names import split_cap

        own = None
        if not isinstance(scheme, Scheme | Engine):
            name, cap = split_cap(scheme)
            scheme = name if cap is None else Scheme.BOUNDED
        if not isinstance(scheme, Scheme | Engine):
            (own,), scheme = own_codes("scheme", [(scheme, {})]), Scheme.HYBRID
        return Recipe(
            scheme,
            construction,
            self.weighed(),
            self.utility,
            self.loads.max_pins,
            today.hash or (HashName.MURMUR3 if before is None else before.hash),
            today.replicas or (DEFAULT_REPLICAS if before is None else before.replicas),
            max_parallelism=today.max_parallelism,
            constraints=limits.constraints(frequencies),
            base=base or (today.engine if before is None else before.hashing),
            own=own,
            cap=cap or USUAL,
        )
