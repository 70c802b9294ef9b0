"""Counting options of commands that build or compare plans."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from adapt.cli.options.groups import option, setting
from adapt.cli.options.spark import RunnerOptions
from adapt.cli.terminal.output import narrate
from adapt.core.counting.names import CountMethod
from adapt.core.partitioning.measures.plan_settings import EXPERT
from adapt.core.stream import KeyType, Weight
from adapt.traces.spark.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapt.core.out_of_sample.windows import CountedPanes
    from adapt.core.partitioning.measures.cells import Hashers
    from adapt.core.partitioning.measures.population import Population
    from adapt.core.partitioning.measures.resources import Resources
    from adapt.core.partitioning.plans.plan import Plan
    from adapt.traces.counting.count_cache import Counted

WeightOption: TypeAlias = Annotated[
    Weight | None, option("What a row weighs (default: cost if the trace has costs, else count).")
]


@dataclass(frozen=True, slots=True)
class KeyCounting:
    """How to count keys of a trace, or read a CSV."""

    weight: WeightOption = None
    exact: bool = setting(
        False, "Count every key exactly, instead of in bounded memory with an error bound.", None, "--exact"
    )
    key_type: KeyType | None = setting(None, "Type of the keys in a CSV (default: string).", panel=EXPERT)
    spark: RunnerOptions = field(default_factory=RunnerOptions)

    def counted(
        self, source: Path, channels: int, resources: "Resources", track: int | None, progress: "Progress"
    ) -> "Counted":
        """Counted keys of a trace, an artefact or a CSV."""
        from adapt.traces.counting.count import Counting
        from adapt.traces.counting.count_cache import counted

        method = CountMethod.EXACT if self.exact else CountMethod.LOSSY
        return counted(
            source,
            Counting(method, channels=channels, resources=resources, track=track, weight=self.weight),
            key_type=self.key_type,
            measure=resources.sources,
            spark_options=self.spark.options(),
            progress=progress,
        )

    def panes_of(self, keys: "Counted", progress: "Progress") -> "CountedPanes":
        """The panes of the counted keys."""
        from adapt.traces.counting.count_cache import panes_of

        return panes_of(keys, spark_options=self.spark.options(), progress=progress)

    def population(
        self,
        keys: "Counted",
        wanted: "Sequence[Hashers]",
        progress: "Progress",
        plans: "Sequence[Plan | None]" = (),
    ) -> "Population":
        """Counted keys with the load of all others."""
        from adapt.traces.counting.population import population_of

        return population_of(
            keys.trace, keys.frequencies, wanted, plans, spark_options=self.spark.options(), progress=progress
        )


def narrate_counts(population: "Population", resources: "Resources", channels: int, *, always: bool = False) -> None:
    """Narrate what the counts cover; exact counts only if `always`."""
    from adapt.core.partitioning.problem.tracking import counted_sentence, measured_sentences

    frequencies = population.frequencies
    if always or not frequencies.exact:
        narrate(counted_sentence(frequencies, resources, channels, estimate=population.is_estimate(resources)))
    for sentence in measured_sentences(frequencies, resources, channels):
        narrate(sentence)
