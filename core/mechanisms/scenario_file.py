"""Reader of scenario files: TOML with one [[scenario]] each."""

import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from adapt.core.elastic.policies.names import Alignment, ScalingPolicy, Signal
from adapt.core.elastic.policies.scaler import BUSIEST, Patience, Rebuild, ScaleOn, check_pool
from adapt.core.errors import AdaptError, BadInput, UsageError
from adapt.core.fit.network.names import DropPlanner
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.mechanisms.scenarios import Scenario, Static
from adapt.core.own.own_code import OPTIONS, OwnCode
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.stage.conditions.names import Migrating, RestartName
from adapt.core.stage.conditions.shed_factor import Thresholds
from adapt.core.toml import Choice, Element, called, elements, number_of, only
from adapt.core.units.amounts import seconds_of

KIND = "scenario"

FIELDS = (
    *("name", "plan", "split", "flux", "memory", "rebuild", "rebuild_limit", "elastic", "workers", "pool", "tau"),
    *("signal", "scale_on", "scale_out_delay", "cooldown", "alignment", "utilization", "lag", "migrate", "restart"),
    *("shed", "drop", OPTIONS),
)
"""The fields of a scenario."""

Finder: TypeAlias = Callable[[str, str, Mapping[str, str], str], OwnCode | None]
"""Finds a user's class or function: kind, name, options, and the field that names it; None if the name is no such."""

_HEAD = re.compile(r"\s*\[\[\s*[\"']?scenario[\"']?\s*\]\]")
_ANY_HEAD = re.compile(r"\s*\[")


def read_scenarios(text: str, own: Finder = lambda *_: None) -> tuple[Scenario, ...]:
    """Read scenarios from the text of a file, in its order.

    Args:
        own: Finds users' classes and functions.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"the file is not TOML: {error}") from None
    lines = text.splitlines()
    for name in document:
        only(f"line {_line_of(lines, 0, name)}: the file", {name: None}, (KIND,))
    tables = elements(document, KIND)
    if not tables:
        raise BadInput("the file has no scenario; start each with a line [[scenario]]")
    heads = [at for at, line in enumerate(lines) if _HEAD.match(line)]
    starts = heads if len(heads) == len(tables) else [0] * len(tables)
    found: dict[str, tuple[Scenario, int]] = {}
    for start, fields in zip(starts, tables, strict=True):
        where = called(KIND, fields)
        for name in fields:
            only(f"line {_line_of(lines, start, name)}: {where}", {name: None}, FIELDS)
        one = _scenario(f"line {start + 1}: {where}", fields, own)
        if one.name in found:
            raise BadInput(
                f"line {start + 1}: scenario {one.name!r} already exists on line {found[one.name][1] + 1}; rename one"
            )
        found[one.name] = (one, start)
    return tuple(one for one, _ in found.values())


def _line_of(lines: list[str], start: int, name: str) -> int:
    """The line of a field in the table that begins at `start`, or of a table; else the first line."""
    field = re.compile(rf"\s*(\[\[?\s*)?[\"']?{re.escape(name)}[\"']?\s*[=\].]")
    for at in range(start, len(lines)):
        if field.match(lines[at]):
            return at + 1
        if at > start and start > 0 and _ANY_HEAD.match(lines[at]):
            break
    return start + 1


def _scenario(where: str, fields: Mapping[str, Any], own: Finder) -> Scenario:
    element = Element(where, fields, FIELDS)
    rebuild = element.get("rebuild")
    delay_s, cooldown_s = _time_or_none(element, "scale_out_delay"), _time_or_none(element, "cooldown")
    try:
        Patience(1.0 if delay_s is None else delay_s, 1.0 if cooldown_s is None else cooldown_s)
        every_s = None if isinstance(rebuild, bool) or rebuild is None else _time(element, "rebuild", rebuild)
        limit = element.number_or_none("rebuild_limit")
        Rebuild(every_s, limit)
        one = Scenario(
            name=element.text("name"),
            plan=_named(element, "plan", Static, own) or Static.UNIFORM,
            split=element.choice("split", Splitting) if "split" in fields else None,
            flux=None if element.get("flux") == FluxPolicy.NONE else _named(element, "flux", FluxPolicy, own),
            memory=element.number_or_none("memory"),
            rebuilds=rebuild is True or every_s is not None or limit is not None,
            rebuild_s=every_s,
            rebuild_limit=limit,
            elastic=_named(element, "elastic", ScalingPolicy, own),
            workers=_whole_or_none(element, "workers"),
            pool=_whole_or_none(element, "pool"),
            thresholds=_thresholds(element),
            signal=element.choice("signal", Signal, Signal.HELD),
            scale_on=ScaleOn.parse(element.text("scale_on")) if "scale_on" in fields else BUSIEST,
            scale_out_delay_s=delay_s,
            cooldown_s=cooldown_s,
            alignment=element.choice("alignment", Alignment, Alignment.ANY),
            utilization=element.number("utilization", 0.8),
            lag_rows=element.number_or_none("lag"),
            migrating=element.choice("migrate", Migrating) if "migrate" in fields else None,
            restart=element.choice("restart", RestartName) if "restart" in fields else None,
            sheds=element.truth("shed", False),
            drops=_planner(element, fields),
        )
        if OPTIONS in fields and not any(isinstance(each, OwnCode) for each in (one.flux, one.elastic)):
            raise UsageError(f"{OPTIONS} are those of a policy of your own; name it as MODULE:CLASS, or remove them")
        if one.workers is not None:
            check_pool(one.workers, one.workers if one.pool is None else one.pool)
    except UsageError as error:
        raise BadInput(_once(where, error)) from None
    return one


def _once(where: str, error: AdaptError) -> str:
    """An error with its place in front, naming the scenario once."""
    place, _, name = where.partition(": ")
    said = str(error)
    return f"{place}: {said}" if said.startswith(name) else f"{where}: {said}"


def _named(element: Element, field: str, kinds: type[Choice], own: Finder) -> Choice | OwnCode | None:
    """A built-in plan or policy, or a user's own; None if omitted."""
    if element.get(field) is None:
        return None
    kind = "scheme" if field == "plan" else "policy"
    options = _options(element) if kind == "policy" else {}
    return own(kind, element.text(field), options, field) or element.choice(field, kinds)


def _options(element: Element) -> dict[str, str]:
    """Parameters of a user's class, as they are typed on a command line."""
    given = element.get(OPTIONS)
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise BadInput(f"{element.where}: {OPTIONS} takes a table such as {{ threshold = 0.1 }} (got {given!r})")
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}


def _planner(element: Element, fields: Mapping[str, Any]) -> DropPlanner | None:
    if "drop" not in fields:
        return None
    planner = element.choice("drop", DropPlanner)
    return None if planner is DropPlanner.NONE else planner


def _thresholds(element: Element) -> Thresholds | None:
    given = element.get("tau")
    if given is None:
        return None
    if not isinstance(given, list) or len(given) != 4:
        raise BadInput(f"{element.where}: tau takes four thresholds such as [0.1, 0.4, 0.8, 0.9] (got {given!r})")
    return Thresholds(*(number_of(element.where, "tau", one) for one in given))


def _whole_or_none(element: Element, name: str) -> int | None:
    return None if element.get(name) is None else element.whole(name, 0)


def _time_or_none(element: Element, name: str) -> float | None:
    value = element.get(name)
    return None if value is None else _time(element, name, value)


def _time(element: Element, name: str, value: Any) -> float:
    """A time in seconds, from a text with a unit."""
    if not isinstance(value, str):
        raise BadInput(f'{element.where}: {name} takes a time with a unit such as "5s" (got {value!r})')
    try:
        return seconds_of(value)
    except UsageError as error:
        raise BadInput(f"{element.where}: {name}: {error}") from None
