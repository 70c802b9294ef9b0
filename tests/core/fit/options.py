"""Options of planners and replays from settings by name, whatever group each is in."""

from dataclasses import fields, is_dataclass

from adapt.core.fit.network.settings import SheddingSettings
from adapt.core.fit.registry import PlannerOptions
from adapt.core.fit.replay.replay import FitOptions


def fit_options(planners, settings=SheddingSettings(), **given):
    """Options of a replay."""
    return _of(FitOptions, {"planners": planners, "settings": settings, **given})


def planner_options(**given):
    """Options of planners; no headroom unless given."""
    return _of(PlannerOptions, given if "settings" in given else {"headroom": 0.0, **given})


def _of(kind, given):
    groups = {}
    for each in fields(kind):
        if is_dataclass(each.type) and each.name not in given:
            names = given.keys() & {one.name for one in fields(each.type)}
            groups[each.name] = each.type(**{name: given[name] for name in names})
            given = {name: value for name, value in given.items() if name not in names}
    return kind(**groups, **given)
