"""The names by which parts of the ordered runtime are chosen; light enough for `--help`."""

from enum import StrEnum


class OperatorKind(StrEnum):
    """How much of an operator may run at once (section 2.1)."""

    STATELESS = "stateless"
    """No state: any number of workers."""
    PARTITIONED = "partitioned"
    """State by key: one worker in each partition of the keys."""
    STATEFUL = "stateful"
    """One state: one worker."""


class PartitionBy(StrEnum):
    """How a key finds its partition."""

    HASH = "hash"
    RANGE = "range"
    PLAN = "plan"


class FunctionName(StrEnum):
    """What an operator computes."""

    WORK = "work"
    """Arithmetic of a given cost and selectivity that keeps a state where the kind has one."""
    COUNT = "count"
    """The number of tuples of its key so far, this one included."""
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
    """Adds the day of a sale and what it brought."""
    BASKET_PAIRS = "basket-pairs"
    """The pairs that an item makes with those bought before it by its key in its hour."""
    SESSION_ITEMS = "session-items"
    """The distinct items of a key's session, eight or sixteen at a time."""
    ITEM_PAIRS = "item-pairs"
    """The pairs of such items."""
    SESSION_PAGES = "session-pages"
    """How many pages of which kinds a key's session has."""
    MEAN_PAGES = "mean-pages"
    """Pages of all sessions, and their number, at the end of the stream."""
    RECENT_VIEWS = "recent-views"
    """At a checkout, those of its key's last five views that are at most ten days old."""
    WINDOW_TOP_100 = "window-top-100"
    """At each punctuation, the hundred most frequent since the last one."""
    FINAL_TOP_30 = "final-top-30"
    """At the end of the stream, the thirty most frequent."""
    FALLING_REVENUE = "falling-revenue"
    """At the end of the stream, keys whose daily revenue did not rise, with its least-squares slope."""


class Reorder(StrEnum):
    """How outputs that workers make at once are put into the order of their inputs (section 3)."""

    CLAIM = "claim"
    """Without locks; a worker takes no tuple whose outputs would not have room in the ring."""
    RETRY = "retry"
    """Without locks; a worker offers outputs that have no room again until they have, as the paper has it."""
    LOCK = "lock"
    """One lock an operator, held while outputs are sent."""


class Worklist(StrEnum):
    """How workers share the tuples of a partitioned operator (section 4)."""

    HYBRID = "hybrid"
    """A queue a partition, and a master queue of partitions; the tuples of a busy partition go to who works in it."""
    PARTITIONED = "partitioned"
    """A queue a partition, which a worker owns while it works on it."""
    SHARED = "shared"
    """One queue, and a lock a partition: wrong, since to take a tuple and its lock are two steps. Kept to show it."""


class OrderlyWorklist(StrEnum):
    """Those worklists that keep the order of partitions."""

    HYBRID = Worklist.HYBRID.value
    PARTITIONED = Worklist.PARTITIONED.value


class Heuristic(StrEnum):
    """Which operator a worker takes next (section 6; `qst` Eq. 1, `et` Eq. 2, `ct` Eq. 3)."""

    CT = "ct"
    """The one with the least worker time a tuple of the ingress, so that all advance alike."""
    LP = "lp"
    """The last that has input."""
    ET = "et"
    """The one whose input is the most work for each of its workers."""
    QST = "qst"
    """The first whose output queue is not above its share of a common size."""
    CT_LITERAL = "ct-literal"
    """As `ct`, with the divisor as the paper prints it."""


class Engine(StrEnum):
    """What runs a chain."""

    THREADS = "threads"
    """Real workers on threads of this machine."""
    SIM = "sim"
    """The model, for any number of workers."""


class CostSource(StrEnum):
    """Where the model has the cost of an operator from."""

    CHAIN = "the chain"
    THREADS = "the real engine with one worker"
    PYTHON = "the serial run in Python"
