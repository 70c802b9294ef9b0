"""Names of the choices of the ordered runtime."""

from enum import StrEnum


class OperatorKind(StrEnum):
    """Kind of an operator: how many workers may run it (section 2.1)."""

    STATELESS = "stateless"
    """No state: any number of workers."""
    PARTITIONED = "partitioned"
    """State by key: one worker per partition."""
    STATEFUL = "stateful"
    """One state: one worker."""


class PartitionBy(StrEnum):
    """How keys are partitioned."""

    HASH = "hash"
    RANGE = "range"
    PLAN = "plan"


class PartitionCount(StrEnum):
    """A number of partitions that is known only when a chain runs."""

    WORKERS = "workers"
    """As many as workers."""


class FunctionName(StrEnum):
    """Function of an operator."""

    WORK = "work"
    """Synthetic work of a given cost and selectivity, with a state where the kind has one."""
    COUNT = "count"
    """Running count of a key's tuples."""
    PROJECT = "project"
    """Drops the fields that no later operator reads."""
    NOT_SEARCHES = "not-searches"
    """Drops clicks on search pages."""
    VIEWS_AND_CHECKOUTS = "views-and-checkouts"
    """Drops clicks on other pages."""
    ABANDONED_CARTS = "abandoned-carts"
    """Drops sessions without a cart and those with a checkout."""
    HOUR = "hour"
    """Adds the hour of a tuple's time."""
    DAY_REVENUE = "day-revenue"
    """Adds the day and the revenue of a sale."""
    BASKET_PAIRS = "basket-pairs"
    """Pairs of an item with the earlier items of its key in the same hour."""
    SESSION_ITEMS = "session-items"
    """Distinct items of a key's session, eight or sixteen at a time."""
    ITEM_PAIRS = "item-pairs"
    """Pairs of such items."""
    SESSION_PAGES = "session-pages"
    """Number and kinds of the pages of a key's session."""
    MEAN_PAGES = "mean-pages"
    """Total pages and number of sessions, at the end of the stream."""
    RECENT_VIEWS = "recent-views"
    """At a checkout, the key's last five views, at most ten days old."""
    WINDOW_TOP_100 = "window-top-100"
    """The hundred most frequent since the last punctuation, at each punctuation."""
    FINAL_TOP_30 = "final-top-30"
    """The thirty most frequent, at the end of the stream."""
    FALLING_REVENUE = "falling-revenue"
    """Keys whose daily revenue does not rise, with the least-squares slope, at the end of the stream."""


class Reorder(StrEnum):
    """Reorder buffer: how outputs are put back in order (section 3)."""

    CLAIM = "claim"
    """Lock-free; a worker takes a tuple only if its outputs have room in the ring buffer."""
    RETRY = "retry"
    """Lock-free; a worker retries until its outputs have room, as in the paper."""
    LOCK = "lock"
    """One lock per operator, held while outputs are sent."""


class WorkQueue(StrEnum):
    """Work queue of a partitioned operator (section 4)."""

    HYBRID = "hybrid"
    """A master queue and a queue per partition; tuples of a busy partition are delegated to its worker."""
    PARTITIONED = "partitioned"
    """A queue per partition, owned by the worker that processes it."""


class Heuristic(StrEnum):
    """Scheduling heuristic (section 6, Eqs. 1 to 3).

    `qst` is Eq. 1, `et` Eq. 2, `ct` Eq. 3.
    """

    CT = "ct"
    """The operator with the least worker time per input row, so that all advance at the same pace."""
    LP = "lp"
    """The last operator with input."""
    ET = "et"
    """The operator with the most queued work per worker."""
    QST = "qst"
    """The first operator whose output queue is below its share of a total limit."""
    CT_LITERAL = "ct-literal"
    """As `ct`, with the divisor printed in the paper."""


class Parallelism(StrEnum):
    """Parallelization scheme: which workers enter which operator, and when (section 8.3)."""

    DYNAMIC = "dynamic"
    """Any worker takes any operator, as the scheduling heuristic says: the paper's."""
    REPLICATED = "replicated"
    """Operators are replicated, tuples are split statically over the replicas, and each has its own worker."""
    MICRO_BATCH = "micro-batch"
    """All workers run a batch of rows through one operator before the next one starts."""
    PIPELINE = "pipeline"
    """One worker per operator."""


class Spacing(StrEnum):
    """How arriving rows are spaced at a rate."""

    POISSON = "poisson"
    """Independent exponential gaps."""
    EVEN = "even"
    """Equal gaps."""
    TRACE = "trace"
    """As in the trace, bursts included."""


class Backend(StrEnum):
    """What runs a chain."""

    THREADS = "threads"
    """Real workers: threads of this machine."""
    SIM = "sim"
    """A model, for any number of workers."""


class CostSource(StrEnum):
    """Source of an operator's cost in the model."""

    CHAIN = "the chain"
    THREADS = "the real engine with one worker"


MOST_CHUNK = 1024
"""Most tuples that a worker claims at once."""
