"""Scenarios: mechanisms and their combinations to compare on one stream."""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, TypeAlias

from adapt.core.elastic.policies.names import Alignment, ScalingPolicy, Signal
from adapt.core.elastic.policies.registry import AnyScalingPolicy
from adapt.core.elastic.policies.scaler import BUSIEST, Patience, Rebuild, ScaleOn, check_pool
from adapt.core.errors import AdaptError, BadInput, UsageError, did_you_mean
from adapt.core.fit.network.names import DropPlanner
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.registry import AnyFluxPolicy
from adapt.core.own.own_code import OPTIONS, OwnCode
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.stage.conditions.names import Migrating, RestartName
from adapt.core.stage.conditions.shed_factor import Thresholds
from adapt.core.toml import Choice, Element, called, elements, number_of, only
from adapt.core.units.amounts import seconds_of


class Static(StrEnum):
    """The initial placement of keys."""

    UNIFORM = "uniform"
    """Hash modulo the number of channels."""

    CONSISTENT = "consistent"
    """Consistent hashing on a ring."""

    HYBRID = "hybrid"
    """A ring with hot keys pinned by the counts of the whole stream (in-sample)."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One mechanism, or several combined.

    Fields that are None default to those of the comparison.

    Attributes:
        name: Letters, digits, points, dashes and underscores.
        plan: The initial placement of keys.
        split: How hot keys are split over channels; None, no splitting.
        flux: The Flux policy that moves partitions; None, no moves.
        memory: Memory of a channel over the average state of a channel; None, no limit.
        rebuilds: Whether plans are rebuilt during the replay.
        rebuild_s: Time between rebuilds.
        rebuild_limit: Imbalance above which the plan is rebuilt.
        elastic: The scaling policy; None, a fixed number of workers.
        workers: M, the workers at the start and the minimum.
        pool: The maximum number of workers.
        thresholds: tau0 to tau3.
        signal: The utilization that is compared with them.
        scale_on: Whose utilization it is.
        scale_out_delay_s: How long more workers must be needed before scaling out.
        cooldown_s: How long fewer workers must be enough before scaling in.
        alignment: Which numbers of workers are allowed.
        utilization: Target utilization of ds2.
        lag_rows: Lag threshold of a worker, in rows.
        migrating: How partitions move in a rescale or rebuild.
        restart: What a restart costs.
        sheds: Whether channels shed load as their buffers fill.
        drops: The FIT planner that drops rows before they reach workers; None, no drops.
    """

    name: str
    plan: Static | OwnCode = Static.UNIFORM
    split: Splitting | None = None
    flux: AnyFluxPolicy | None = None
    memory: float | None = None
    rebuilds: bool = False
    rebuild_s: float | None = None
    rebuild_limit: float | None = None
    elastic: AnyScalingPolicy | None = None
    workers: int | None = None
    pool: int | None = None
    thresholds: Thresholds | None = None
    signal: Signal = Signal.HELD
    scale_on: ScaleOn = BUSIEST
    scale_out_delay_s: float | None = None
    cooldown_s: float | None = None
    alignment: Alignment = Alignment.ANY
    utilization: float = 0.8
    lag_rows: float | None = None
    migrating: Migrating | None = None
    restart: RestartName | None = None
    sheds: bool = False
    drops: DropPlanner | None = None

    def __post_init__(self) -> None:
        if not self.name or not all(letter.isalnum() or letter in "-_." for letter in self.name) or self.name[0] == ".":
            raise UsageError(f"a scenario cannot be named {self.name!r}; use letters, digits, '.', '-' and '_'")
        for one, other in self._apart():
            raise UsageError(f"scenario {self.name!r}: {one} and {other} exclude each other; remove one")
        if self.memory is not None and not 1 <= self.memory < float("inf"):
            raise UsageError(
                f"scenario {self.name!r}: memory must be at least 1, the average state (got {self.memory:g})"
            )

    def as_data(self) -> dict[str, Any]:
        """The fields that differ from their defaults, as JSON data."""
        given = {
            each.name: getattr(self, each.name) for each in fields(self) if getattr(self, each.name) != each.default
        }
        named: dict[str, Any] = {"scale_on": str(self.scale_on)} if "scale_on" in given else {}
        named |= {name: each.as_data() for name, each in given.items() if isinstance(each, OwnCode)}
        return given | named | ({} if self.thresholds is None else {"thresholds": asdict(self.thresholds)})

    @property
    def is_scaled(self) -> bool:
        """Whether it plans partitions: by rebuilds, or for other workers."""
        return self.rebuilds or self.elastic is not None

    def _apart(self) -> list[tuple[str, str]]:
        """Pairs of its parts that exclude each other."""
        has = {
            "split": self.split is not None,
            "flux": self.flux is not None,
            "memory": self.memory is not None,
            "rebuild": self.rebuilds,
            "elastic": self.elastic is not None,
            "a plan": self.plan is not Static.UNIFORM,
            "drop": self.drops is not None,
            "shed": self.sheds,
            "migrate": self.migrating is not None,
            "restart": self.restart is not None,
            "alignment": self.alignment is not Alignment.ANY,
            "scale_on": self.scale_on != BUSIEST,
        }
        apart = (
            *(("split", other) for other in ("flux", "rebuild", "elastic", "a plan")),
            *(("flux", other) for other in ("rebuild", "elastic")),
            *(("memory", other) for other in ("rebuild", "elastic")),
            *(("a plan", other) for other in ("rebuild", "elastic")),
            *(("drop", other) for other in ("split", "flux", "rebuild", "elastic")),
        )
        return [pair for pair in apart if has[pair[0]] and has[pair[1]]]


TIGHT = 1.15
"""Limited memory of a channel, over the average state of a channel."""

SCENARIOS = (
    Scenario("static-uniform"),
    Scenario("static-consistent", Static.CONSISTENT),
    Scenario("static-hybrid", Static.HYBRID),
    Scenario("split-pkg", split=Splitting.PKG),
    Scenario("split-w-choices", split=Splitting.W_CHOICES),
    Scenario("flux-load", flux=FluxPolicy.LOAD),
    Scenario("static-memory", memory=TIGHT),
    Scenario("flux-memory", flux=FluxPolicy.MEMORY, memory=TIGHT),
    Scenario("flux-hybrid", flux=FluxPolicy.HYBRID, memory=TIGHT),
    Scenario("rebuild", rebuilds=True),
    Scenario("elastic", elastic=ScalingPolicy.THRESHOLDS),
    Scenario("ds2", elastic=ScalingPolicy.DS2),
    Scenario("lag", elastic=ScalingPolicy.LAG),
    Scenario("shed", sheds=True),
    Scenario("shed-exact", drops=DropPlanner.EXACT),
    Scenario("shed-c-fit", drops=DropPlanner.C_FIT),
    Scenario("shed-d-fit", drops=DropPlanner.D_FIT),
    Scenario("flux-shed", flux=FluxPolicy.LOAD, sheds=True),
    Scenario("elastic-shed", elastic=ScalingPolicy.THRESHOLDS, signal=Signal.OFFERED, sheds=True),
)
"""The built-in scenarios; the first is the baseline."""

BY_NAME = (
    Scenario("slicer", flux=FluxPolicy.SLICER),
    Scenario("flink", elastic=ScalingPolicy.FLINK, migrating=Migrating.RESTART, restart=RestartName.FLINK_SAVEPOINT),
    Scenario("spark", elastic=ScalingPolicy.SPARK),
)
"""Further built-in scenarios, which run only by name: comparisons are often shorter than the intervals of policies of
other systems."""

BASELINE = SCENARIOS[0].name
"""The baseline: plain hashing, nothing adapts."""

ALL = "all"
"""All of `SCENARIOS`."""


def chosen(names: Sequence[str], further: Sequence[Scenario] = ()) -> tuple[Scenario, ...]:
    """The scenarios with these names, each once, the baseline first.

    Args:
        names: Names of built-in and own scenarios, or `ALL`; empty, all own ones if any, else all of `SCENARIOS`.
        further: Own scenarios; they replace built-in ones of the same name.
    """
    known = {one.name: one for one in (*SCENARIOS, *BY_NAME, *further)}
    given = [each for name in names for each in ([one.name for one in SCENARIOS] if name == ALL else [name])]
    wanted = given or [one.name for one in further or SCENARIOS]
    for name in wanted:
        if name not in known:
            raise UsageError(f"scenario {name!r} does not exist{did_you_mean(name, known)}")
    return tuple(known[name] for name in dict.fromkeys([BASELINE, *wanted]))


def own_scenarios(policies: Sequence[OwnCode]) -> tuple[Scenario, ...]:
    """The scenarios of users' classes, named `module.Class`.

    A class with the methods `moves` and `workers` makes two, `module.Class-moves` and `module.Class-workers`.
    """
    found = []
    for own in dict.fromkeys(policies):
        name = own.name.replace(":", ".")
        if sum(each.name == own.name for each in policies) > 1:
            name += "".join(f"-{parameter}={value}" for parameter, value in own.options)
        moves, scales = hasattr(own.call, "moves"), hasattr(own.call, "workers")
        if not (moves or scales):
            raise UsageError(f"policy {own.name} has neither a method moves(self, view) nor workers(self, view)")
        if moves:
            found.append(Scenario(f"{name}-moves" if scales else name, flux=own))
        if scales:
            found.append(Scenario(f"{name}-workers" if moves else name, elastic=own))
    return tuple(found)


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
    for start, entry in zip(starts, tables, strict=True):
        where = called(KIND, entry)
        for name in entry:
            only(f"line {_line_of(lines, start, name)}: {where}", {name: None}, FIELDS)
        one = _scenario(f"line {start + 1}: {where}", entry, own)
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
