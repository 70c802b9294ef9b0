"""Layouts of tuples: fields of streams, operators and payloads.

Source: ordered streams, section 7.1: "per-tuple processing cost, input tuple size, state size [...] and selectivity
can be varied". What the words hold is ours.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput
from adapt.core.ordered.chain.chain import WORD, Chain, Operator, Passes, made_keys, role_of
from adapt.core.ordered.chain.graph import FROM
from adapt.core.ordered.chain.mixing import mixed


def payload_fields(tuple_bytes: int) -> tuple[str, ...]:
    """Names of the words of a payload."""
    return tuple(f"payload {number}" for number in range(tuple_bytes // WORD))


def payload_bytes(operators: Sequence[Operator]) -> int:
    """Payload of a chain's tuples: the largest that an operator reads."""
    return max(operator.tuple_bytes for operator in operators)


def payload_of(rows: NDArray[np.int64], tuple_bytes: int) -> NDArray[np.int64]:
    """Payload of rows by their numbers, shape (rows, words).

    It is (row + 1) times a factor for each word, modulo 2^64.
    """
    factors = np.array([mixed(number + 1) for number in range(tuple_bytes // WORD)], np.uint64).view(np.int64)
    return (rows[:, None] + 1) * factors


@dataclass(frozen=True, slots=True)
class Layouts:
    """Fields by name, in the order of their words."""

    streams: tuple[tuple[str, ...], ...]  # fields of each stream
    # fields that each operator is given: those of its stream or, with several, of any of them
    given: tuple[tuple[str, ...], ...]


def key_field(column: str) -> str:
    """The field with the number of a key."""
    return f"key {column}"


def cost_field(column: str) -> str:
    """The field with a cost in nanoseconds."""
    return f"cost {column}"


def layouts_of(chain: Chain, columns: Sequence[tuple[str, ...]]) -> Layouts:
    """Layouts of a chain whose inputs have these fields.

    Functions that pass on only needed fields drop those that no later operator reads.
    """
    operators, graph = chain.operators, chain.graph
    roles, keys_made = [role_of(operator.function) for operator in operators], made_keys(operators, graph)
    streams, given = list(columns), list[tuple[str, ...]]()
    for role, sources in zip(roles, graph.sources, strict=True):
        given.append(_united(streams[stream] for stream in sources))
        passed = () if role.passes is Passes.NONE else given[-1]
        streams.append((*passed, *(name for name in role.makes if name not in passed)))
    needed = [set(fields) if stream in graph.outputs else set[str]() for stream, fields in enumerate(streams)]
    wanted = list[set[str]]()
    for number in reversed(range(len(operators))):
        operator, passes = operators[number], roles[number].passes
        reads = reads_of(operator, operator.name in keys_made)
        for name in reads:
            if name not in given[number] and not is_from(chain, name):
                raise BadInput(f"operator {operator.name!r} reads {_said(name)}, {_lost(name, number, chain, streams)}")
        kept = set() if passes is Passes.NONE else needed[graph.made_by(number)] & set(given[number])
        wanted.insert(0, kept | set(reads))
        for stream in graph.sources[number]:
            needed[stream] |= wanted[0] & set(streams[stream])
    fields = [_of(streams[stream], needed[stream]) for stream in range(len(graph.inputs))]
    for number, role in enumerate(roles):
        taken = list(dict.fromkeys(fields[stream] for stream in graph.sources[number]))
        several = len(taken) > 1 or (FROM in wanted[number] and is_from(chain, FROM))
        given[number] = _of(_united([*taken, (FROM,)]), wanted[number]) if several else taken[0]
        match role.passes:
            case Passes.ALL:
                fields.append(given[number])
            case Passes.NEEDED:
                fields.append(_of(streams[graph.made_by(number)], needed[graph.made_by(number)]))
            case Passes.NONE:
                fields.append(role.makes)
    return Layouts(tuple(fields), tuple(given))


def is_from(chain: Chain, name: str) -> bool:
    """Whether a field says which stream a tuple comes from."""
    return name == FROM and not chain.graph.is_linear


def reaching(chain: Chain, operator: int, name: str) -> frozenset[int]:
    """Inputs whose column of a name reaches an operator unchanged."""
    graph, found = chain.graph, set[int]()
    for stream in graph.sources[operator]:
        if stream < len(graph.inputs):
            found.add(stream)
            continue
        before = stream - len(graph.inputs)
        role = role_of(chain.operators[before].function)
        if role.passes is not Passes.NONE and name not in role.makes:
            found |= reaching(chain, before, name)
    return frozenset(found)


def reads_of(operator: Operator, is_key_made: bool) -> tuple[str, ...]:
    """Fields that an operator reads."""
    key = operator.key
    return (
        *([] if key is None else [key if is_key_made else key_field(key)]),
        *([cost_field(operator.cost)] if isinstance(operator.cost, str) else []),
        *role_of(operator.function).reads,
        *payload_fields(operator.tuple_bytes),
    )


def _united(fields: Iterator[tuple[str, ...]] | Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for each in fields for name in each))


def _of(fields: tuple[str, ...], needed: set[str]) -> tuple[str, ...]:
    """Needed fields, at least one: a punctuation has a word for its time."""
    return tuple(name for name in fields if name in needed) or fields[:1]


def _lost(name: str, number: int, chain: Chain, streams: Sequence[tuple[str, ...]]) -> str:
    """Where an operator's field was lost."""
    graph, names = chain.graph, [*chain.graph.inputs, *(each.name for each in chain.operators)]
    if not graph.is_linear:
        sources = [repr(names[stream]) for stream in graph.sources[number]]
        return f"which {' and '.join(sources)} {'does' if len(sources) == 1 else 'do'} not give"
    last = max((stream for stream, fields in enumerate(streams) if name in fields), default=0)
    return f"which is dropped by operator {chain.operators[min(last, len(chain.operators) - 1)].name!r}"


def _said(name: str) -> str:
    return f"the {name}" if " " in name else f"the field {name!r}"


def places_of(given: Sequence[str], stream: Sequence[str], defaults: Mapping[str, int]) -> tuple[tuple[int, int], ...]:
    """Places of an operator's fields in the tuples of a stream.

    With the word that it has where the place is -1.
    """
    return tuple(
        (stream.index(name) if name in stream and name != FROM else -1, defaults.get(name, 0)) for name in given
    )
