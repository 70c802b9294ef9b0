"""Registry of operator functions by name."""

from adapt.core.ordered.chain.names import FunctionName
from adapt.core.ordered.functions.baskets import BasketPairs
from adapt.core.ordered.functions.count import Count
from adapt.core.ordered.functions.falling_revenue import FallingRevenue
from adapt.core.ordered.functions.function import Function
from adapt.core.ordered.functions.sessions import ItemPairs, MeanPages, RecentViews, SessionItems, SessionPages
from adapt.core.ordered.functions.stateless import (
    ABANDONED_CARTS,
    NOT_SEARCHES,
    PROJECT,
    VIEWS_AND_CHECKOUTS,
    DayRevenue,
    Hour,
)
from adapt.core.ordered.functions.top import Top
from adapt.core.ordered.functions.work import Work

FUNCTIONS: dict[FunctionName, Function] = {
    FunctionName.WORK: Work(),
    FunctionName.COUNT: Count(),
    FunctionName.PROJECT: PROJECT,
    FunctionName.NOT_SEARCHES: NOT_SEARCHES,
    FunctionName.VIEWS_AND_CHECKOUTS: VIEWS_AND_CHECKOUTS,
    FunctionName.ABANDONED_CARTS: ABANDONED_CARTS,
    FunctionName.HOUR: Hour(),
    FunctionName.DAY_REVENUE: DayRevenue(),
    FunctionName.BASKET_PAIRS: BasketPairs(),
    FunctionName.SESSION_ITEMS: SessionItems(),
    FunctionName.ITEM_PAIRS: ItemPairs(),
    FunctionName.SESSION_PAGES: SessionPages(),
    FunctionName.MEAN_PAGES: MeanPages(),
    FunctionName.RECENT_VIEWS: RecentViews(),
    FunctionName.WINDOW_TOP_100: Top(100, final=False),
    FunctionName.FINAL_TOP_30: Top(30, final=True),
    FunctionName.FALLING_REVENUE: FallingRevenue(),
}
