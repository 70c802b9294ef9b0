"""Saved splitters: lines of text that Python and Java read.

Source: `Splitter.java` reads the same lines.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from adapt.core.counting.exact import KeyCounts
from adapt.core.counting.frequencies import Counts, key_order
from adapt.core.counting.lossy import DISTINCT_LIMIT, CounterState, LossySummary, amounts
from adapt.core.counting.sketches import DistinctSketch
from adapt.core.counting.sliding import SlidingState, SlidingWindow
from adapt.core.engines.any_language.plan_text import END, plan_text
from adapt.core.engines.hexadecimal import hex_of
from adapt.core.errors import BadInput, UsageError
from adapt.core.keys.columns import ARROW_TYPES
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.from_counts.bounded import USUAL
from adapt.core.partitioning.measures.resources import RESOURCES, Resources
from adapt.core.partitioning.plans.plan import Plan, plan_from_data, plan_to_data
from adapt.core.partitioning.problem.constraints import Constraints, MigrationLimit
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.names import Construction, Scheme, UtilityName
from adapt.core.stream import KeyType, Weight
from adapt.core.units.row_or_time_span import Length

HEADER = "adapt.splitter/1"
"""The first line; readers refuse versions that they do not know."""

_SEAL = "seal "
"""Begins the second line, with the SHA-256 in hex of all after that line."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A splitter between two rows."""

    plan: Plan
    recipe: Recipe
    window: SlidingWindow
    epsilon: float
    weight: Weight
    counted: SlidingState


def saved_text(saved: Saved) -> bytes:
    """The splitter as ASCII text.

    One field per line: name, space, value; equal splitters give equal text.
    """
    counted = saved.counted
    data = json.dumps(plan_to_data(saved.plan, with_explicit=False), sort_keys=True, separators=(",", ":"))
    fields = {
        "window": f"{saved.window.length.size} {'rows' if saved.window.length.in_rows else 'us'}",
        "counters": saved.window.counters,
        "epsilon": saved.epsilon,
        "weight": saved.weight,
        "pane": counted.pane,
        "next": counted.next,
        "origin": counted.origin,
        "last": counted.last,
        **_recipe_fields(saved.recipe),
        "plan": data,
    }
    head = (f"{name} {value}" for name, value in fields.items() if value is not None)
    lines = chain(head, _recipe_keys(saved.recipe), *(_counter(*each) for each in counted.counters.items()), [""])
    body = "\n".join(lines).encode() + plan_text(saved.plan)
    return f"{HEADER}\n{_SEAL}{sha256(body).hexdigest()}\n".encode() + body


def is_sealed(text: bytes) -> bool:
    """Whether a saved splitter has a seal."""
    return text.startswith(f"{HEADER}\n{_SEAL}".encode())


def saved_from_text(text: bytes, recipe: Recipe | None = None) -> Saved:
    """Read what `saved_text` wrote, by Python or Java.

    Args:
        recipe: A recipe in place of the saved one.
    """
    lines = text.decode("ascii", "replace").split("\n")
    family, _, version = lines[0].partition("/")
    if family != HEADER.partition("/")[0]:
        raise BadInput("not a saved splitter; save one with adapt.write_splitter")
    if lines[0] != HEADER:
        raise BadInput(f"saved in version {version}, which this adapt does not read; save it again with this version")
    if lines[-2:] != [END, ""]:
        raise BadInput("cut off: it has no last line 'end'; save the splitter again")
    if is_sealed(text):
        _, seal, body = text.split(b"\n", 2)
        if seal != f"{_SEAL}{sha256(body).hexdigest()}".encode():
            raise BadInput("changed after it was saved: its content does not match its seal; save the splitter again")
    try:
        return _read([line.split(" ") for line in lines[1:-2]], recipe)
    except (KeyError, IndexError, ValueError, UsageError, pa.ArrowInvalid) as error:
        raise BadInput(f"a damaged splitter ({error!r:.100}); save it again") from error


def _recipe_fields(recipe: Recipe) -> dict[str, Any]:
    """The parameters of a recipe that are not those of its plan; None if not given."""
    resources, limits = recipe.resources, recipe.constraints
    measured = zip(RESOURCES, resources.measured, strict=True)
    return {
        "recipe": recipe.scheme,
        "construction": recipe.construction,
        "resources": resources.text,
        "tolerance": " ".join(map(str, resources.tolerance)),
        "sigma": resources.sigma,
        "measure": ",".join(f"{name}={source}" for name, source in measured if source) or None,
        "utility": recipe.utility,
        "max_pins": recipe.max_pins,
        "each_replicas": recipe.replicas,
        "cap": recipe.cap if recipe.scheme is Scheme.BOUNDED else None,
        "groups": recipe.max_parallelism,
        "capacities": None if limits.capacities is None else " ".join(map(str, limits.capacities)),
        "max_migration": limits.max_migration,
    }


def _recipe_keys(recipe: Recipe) -> Iterator[str]:
    pinned = recipe.constraints.pinned
    yield from _rows("pin", pinned.column, pinned.channels)


def _counter(start: int, state: CounterState) -> Iterator[str]:
    """The lines of a counter: its numbers, its sketch, its keys, and the rows since its last purge."""
    kept, pending = state.kept, state.pending
    rows = 0 if pending is None else pending.rows
    yield f"counter {start} {kept.rows} {kept.total} {kept.missed} {rows} {state.peak_entries} {state.peak_buffer}"
    yield " ".join(["sketch", *(f"{hash:x}" for hash in kept.distinct.smallest.tolist())])
    yield from _rows("kept", kept.keys, kept.counts, kept.errors)
    if pending is not None:
        in_order = pending.counts.dtype == np.float64  # sums of floats depend on it
        order = np.arange(len(pending.keys)) if in_order else key_order(pending.keys, pending.counts)
        yield from _rows("new", pending.keys.take(pa.array(order)), pending.counts[order])


def _rows(name: str, keys: pa.Array, *columns: Counts | Channels) -> Iterator[str]:
    """A line per key: name, numbers, key bytes in hex or null."""
    present = keys.is_valid().to_pylist()
    texts = (text if known else "null" for text, known in zip(hex_of(keys).to_pylist(), present, strict=True))
    for row in zip(*(column.tolist() for column in columns), texts, strict=True):
        yield " ".join(map(str, (name, *row)))


def _read(lines: Sequence[list[str]], recipe: Recipe | None) -> Saved:
    fields = {line[0]: line[1:] for line in lines if line[0] not in ("kept", "new", "pin", "key")}
    data = json.loads(" ".join(fields["plan"]))
    key_type, weight = KeyType(data["key_type"]), Weight(fields["weight"][0])
    keys, channels = _columns(lines, "key", key_type, np.int32)
    plan = plan_from_data(data, pa.table({"key": keys, "channel": channels}))
    if plan.content_hash() != fields["content_hash"][0]:
        raise BadInput("changed after it was saved: its plan does not match its content_hash; save the splitter again")
    size, unit = fields["window"]
    return Saved(
        plan,
        recipe or _recipe(fields, lines, plan),
        SlidingWindow(Length(int(size), in_rows=unit == "rows"), int(fields["counters"][0])),
        float(fields["epsilon"][0]),
        weight,
        SlidingState(
            {int(part[0][1]): _counter_state(part, key_type, weight) for part in _parts(lines)},
            int(fields["pane"][0]),
            int(fields["next"][0]),
            *(int(fields[name][0]) if name in fields else None for name in ("origin", "last")),
        ),
    )


def _recipe(fields: Mapping[str, list[str]], lines: Sequence[list[str]], plan: Plan) -> Recipe:
    for name in {"pin_only", "max_moves"} & fields.keys():
        raise BadInput(f"saved with {name}, which this adapt does not read; create the splitter again")
    scheme = Scheme(fields["recipe"][0]) if fields["recipe"][0] in list(Scheme) else plan.hashing
    number = {name: int(fields[name][0]) if name in fields else None for name in ("max_pins", "groups")}
    pins, channels = _columns(lines, "pin", plan.key_type, np.int32)
    return Recipe(
        scheme,
        Construction(fields["construction"][0]),
        replace(
            Resources.parse(
                fields["resources"][0], measure=[" ".join(fields["measure"])] if "measure" in fields else []
            ),
            tolerance=tuple(map(json.loads, fields["tolerance"])),  # 2 stays apart from 2.0, as in a content hash
            sigma=json.loads(fields["sigma"][0]),
        ),
        UtilityName(fields["utility"][0]) if "utility" in fields else None,
        number["max_pins"],
        plan.hash,
        int(fields["each_replicas"][0]),
        number["groups"],
        Constraints(
            tuple(map(json.loads, fields["capacities"])) if "capacities" in fields else None,
            ExplicitMap(pins, channels),
            MigrationLimit.parse(fields["max_migration"][0]) if "max_migration" in fields else None,
        ),
        plan.hashing if scheme is Scheme.HYBRID else Scheme.CONSISTENT,
        cap=float(fields["cap"][0]) if "cap" in fields else USUAL,
    )


def _parts(lines: Iterable[list[str]]) -> list[list[list[str]]]:
    """The lines of each counter."""
    parts: list[list[list[str]]] = []
    for line in lines:
        if line[0] == "counter":
            parts.append([])
        if parts:
            parts[-1].append(line)
    return parts


def _counter_state(lines: Sequence[list[str]], key_type: KeyType, weight: Weight) -> CounterState:
    _, _, rows, total, missed, pending_rows, entries, buffer = lines[0]
    number = float if weight is Weight.COST else int
    sketch = DistinctSketch(np.array([int(each, 16) for each in lines[1][1:]], np.uint64), DISTINCT_LIMIT)
    keys, counts, errors = _columns(lines, "kept", key_type, *[amounts([], weight).dtype] * 2)
    kept = LossySummary(keys, counts, errors, number(missed), number(total), int(rows), sketch)
    keys, counts = _columns(lines, "new", key_type, amounts([], weight).dtype)
    pending = KeyCounts(keys, counts, int(pending_rows)) if int(pending_rows) else None
    return CounterState(kept, pending, int(entries), int(buffer))


def _columns(lines: Iterable[list[str]], name: str, key_type: KeyType, *types: Any) -> list[Any]:
    """The keys of the lines of a name, and the numbers before them."""
    found = [line for line in lines if line[0] == name]
    raw = [None if line[-1] == "null" else bytes.fromhex(line[-1]) for line in found]
    if key_type.storage is KeyType.INT64:
        keys = pa.array(
            [None if key is None else int.from_bytes(key, "little", signed=True) for key in raw], pa.int64()
        )
    else:
        keys = pa.array(raw, pa.binary()).cast(ARROW_TYPES[key_type])
    return [keys, *(np.array([line[at] for line in found]).astype(kind) for at, kind in enumerate(types, 1))]
