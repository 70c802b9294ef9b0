"""The names by which policies of Flux are chosen; light enough for `--help`."""

from enum import StrEnum


class FluxPolicy(StrEnum):
    """What moves partitions between workers."""

    NONE = "none"
    """Nothing: every partition stays where it is."""

    LOAD = "load"
    """As the paper has it: evens out utilization, one partition a pair of workers."""

    MEMORY = "memory"
    """As the paper has it: evens out memory to spare."""

    HYBRID = "hybrid"
    """As the paper has it: memory while anything is on disk, else load."""

    LOAD_AUTO = "load-auto"
    """That for load, finding by itself how long to collect."""

    LOAD_GUARDED = "load-guarded"
    """Evens out utilization, and is not fooled by receivers that look idle."""

    LOAD_SEVERAL = "load-several"
    """The guarded one, as many moves a round as are wanted, and ever finer ones while nothing changes."""

    MEMORY_SEVERAL = "memory-several"
    """Evens out memory to spare, with several moves a round."""

    HYBRID_SEVERAL = "hybrid-several"
    """Memory while anything is on disk, else load; with several moves a round and ever finer ones."""

    OPTIMUM = "optimum"
    """Knows the run ahead, and assigns partitions as well as can be: a bound for the others."""
