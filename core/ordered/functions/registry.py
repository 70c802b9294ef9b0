"""Registry of operator functions by name."""

from collections.abc import Callable

from adapt.core.ordered.chain.bound import BoundOperator
from adapt.core.ordered.chain.names import FunctionName
from adapt.core.ordered.functions.clicks import item_pairs, mean_pages, recent_views, sessions
from adapt.core.ordered.functions.function import Function
from adapt.core.ordered.functions.sales import (
    ABANDONED,
    basket_pairs,
    day_revenue,
    falling_revenue,
    hour,
    picking,
    top,
)
from adapt.core.ordered.functions.work import count, work

FUNCTIONS: dict[FunctionName, Callable[[BoundOperator], Function]] = {
    FunctionName.WORK: work,
    FunctionName.COUNT: count,
    FunctionName.PROJECT: picking(),
    FunctionName.NOT_SEARCHES: picking("page", 0, 1, 2),
    FunctionName.VIEWS_AND_CHECKOUTS: picking("page", 0, 2),
    FunctionName.ABANDONED_CARTS: picking("kinds", *ABANDONED),
    FunctionName.HOUR: hour,
    FunctionName.DAY_REVENUE: day_revenue,
    FunctionName.BASKET_PAIRS: basket_pairs,
    FunctionName.SESSION_ITEMS: sessions("item"),
    FunctionName.ITEM_PAIRS: item_pairs,
    FunctionName.SESSION_PAGES: sessions("page"),
    FunctionName.MEAN_PAGES: mean_pages,
    FunctionName.RECENT_VIEWS: recent_views,
    FunctionName.WINDOW_TOP_100: top(100, final=False),
    FunctionName.FINAL_TOP_30: top(30, final=True),
    FunctionName.FALLING_REVENUE: falling_revenue,
}
