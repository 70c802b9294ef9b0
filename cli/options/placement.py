"""Options of how plans place keys, whatever the scheme."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from adapt.cli.options.groups import EXPERT, option, setting
from adapt.cli.options.loads import Loads, MeasureOption
from adapt.cli.options.named_keys import LimitOptions, Limits
from adapt.core.engines.names import CURRENT_SCHEMES, SCHEMES_BY_NAME, AnyScheme
from adapt.core.keys.names import HashName
from adapt.core.partitioning.schemes.names import DEFAULT_CONSTRUCTION, Construction, Scheme, UtilityName

if TYPE_CHECKING:
    from adapt.core.counting.frequencies import Frequencies
    from adapt.core.partitioning.build import Recipe
    from adapt.core.partitioning.measures.resources import Resources

    SchemeChoice: TypeAlias = AnyScheme
    CurrentSchemeChoice: TypeAlias = AnyScheme
else:  # typer takes the choices of an option from an enumeration or a Literal, and from no union
    SchemeChoice = Literal[tuple(SCHEMES_BY_NAME.values())]
    CurrentSchemeChoice = Literal[CURRENT_SCHEMES]

EngineOption: TypeAlias = Annotated[
    CurrentSchemeChoice, option("What places the keys of the stream today, for the verdict.")
]
UtilityOption: TypeAlias = Annotated[UtilityName, option("How balance and migration are combined.", panel=EXPERT)]
HashOption: TypeAlias = Annotated[HashName, option("Hash of keys.", panel=EXPERT)]
MaxParallelismOption: TypeAlias = Annotated[
    int | None, option("Key groups of schemes that have them; Flink's default if left out.", "N", panel=EXPERT)
]


@dataclass(frozen=True, slots=True)
class Placement:
    """How keys are placed: loads, utility, hash, limits."""

    PANEL = EXPERT
    loads: Loads = field(default_factory=Loads)
    measure: MeasureOption = None
    utility: UtilityOption = UtilityName.APM
    hash: HashOption = HashName.MURMUR3
    limits: LimitOptions = field(default_factory=LimitOptions)
    moves: int | None = setting(
        None, "How often readj may move each key; as often as it likes if left out.", "C", "--moves", min=1
    )
    max_parallelism: MaxParallelismOption = None

    def weighed(self) -> "Resources":
        """The loads and tolerances, as `Loads.weighed` reads them."""
        return self.loads.weighed(self.measure)

    def recipe(
        self,
        limits: Limits,
        frequencies: "Frequencies",
        scheme: AnyScheme = Scheme.HYBRID,
        construction: Construction = DEFAULT_CONSTRUCTION,
    ) -> "Recipe":
        """How partitioners are built, with named keys as keys of the type of those that were counted.

        Raises:
            BadInput: a pinned or tracked key has another type, or was not counted.
        """
        from adapt.core.partitioning.build import Recipe

        return Recipe(
            scheme,
            construction,
            self.weighed(),
            self.utility,
            self.loads.track,
            self.hash,
            moves=self.moves,
            max_parallelism=self.max_parallelism,
            constraints=limits.constraints(frequencies),
            track_keys=limits.track_keys(frequencies),
        )
