"""Graph of a chain: the streams that each operator reads.

A stream is an input, or the output of an operator. Inputs are numbered first, then operators.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from adapt.core.errors import BadInput, did_you_mean

TRACE = "trace"
"""Name of the only input, unless the chain names its inputs."""

FROM = "from_"
"""Parameter of own functions: the place in `from` of the stream that a tuple comes from, from 0."""

MOST_INPUTS = 8


@dataclass(frozen=True, slots=True)
class Graph:
    """Streams of a chain."""

    inputs: tuple[str, ...]  # names of the inputs
    # streams that each operator reads, in the order of its `from`; all are made before it
    sources: tuple[tuple[int, ...], ...]
    outputs: tuple[int, ...]  # streams that leave the chain

    @property
    def is_linear(self) -> bool:
        """Whether each operator reads the one before it, and the last leaves."""
        return (
            len(self.inputs) == 1
            and self.sources == tuple((at,) for at in range(len(self.sources)))
            and self.outputs == (len(self.sources),)
        )

    def made_by(self, operator: int) -> int:
        """The stream that an operator makes."""
        return len(self.inputs) + operator

    def readers(self, stream: int) -> tuple[int, ...]:
        """Operators that read a stream, in order."""
        return tuple(number for number, sources in enumerate(self.sources) if stream in sources)

    def live(self, operator: int) -> tuple[int, ...]:
        """Streams made before an operator and not used up.

        It or a later one reads them, or they leave.
        """
        return tuple(
            stream
            for stream in range(self.made_by(operator))
            if stream in self.outputs or any(reader >= operator for reader in self.readers(stream))
        )


def graph_of(
    names: Sequence[str], reads: Sequence[tuple[str, ...] | None], inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> Graph:
    """The graph of named operators.

    Args:
        names: Names of the operators, which differ.
        reads: What each one reads; None for the operator before it, and for the first one the only input.
        inputs: Names of the inputs; empty for one, `TRACE`.
        outputs: Operators whose output leaves; empty for the only one that nobody reads.
    """
    if len(inputs) > MOST_INPUTS:
        raise BadInput(f"a chain must have at most {MOST_INPUTS} inputs (got {len(inputs)})")
    twice = [name for at, name in enumerate(inputs) if name in (*inputs[:at], *names, "")]
    if twice:
        raise BadInput(f"inputs must have names that differ from each other and from operators (got {twice[0]!r})")
    given = inputs or (TRACE,)
    numbers = {name: number for number, name in enumerate([*given, *names])}
    sources = []
    for at, name in enumerate(names):
        where, read = f"operator {name!r}", reads[at]
        if read is None and at == 0 and len(given) > 1:
            raise BadInput(f"{where} must say which inputs it reads; add from = [{', '.join(map(repr, given))}]")
        read = (names[at - 1] if at else given[0],) if read is None else read
        if not read or len(set(read)) < len(read):
            raise BadInput(f"{where}: from must name different inputs and operators (got {list(read)})")
        for each in read:
            if each not in numbers:
                raise BadInput(
                    f"{where} reads {each!r}, which is not an input or operator{did_you_mean(each, numbers)}"
                )
            if numbers[each] >= numbers[name]:
                raise BadInput(_backward(names, reads, at, each))
        sources.append(tuple(numbers[each] for each in read))
    graph = Graph(given, tuple(sources), ())
    unread = [stream for stream in range(len(numbers)) if not graph.readers(stream)]
    if unread[0] < len(given):
        unused = given[unread[0]]
        raise BadInput(f"no operator reads input {unused!r}; name it in the from of an operator, or remove it")
    leaves = _leaving(names, outputs, [stream - len(given) for stream in unread])
    return Graph(given, tuple(sources), tuple(len(given) + number for number in leaves))


def _leaving(names: Sequence[str], outputs: tuple[str, ...], unread: Sequence[int]) -> list[int]:
    """Numbers of the operators whose output leaves."""
    if not outputs:
        if len(unread) > 1:
            ends = ", ".join(f'"{names[number]}"' for number in unread)
            raise BadInput(
                f"{len(unread)} operators are read by no other: add outputs = [{ends}] before the first [[operator]], "
                "or read them in one operator"
            )
        return list(unread)
    for name in outputs:
        if name not in names or outputs.count(name) > 1:
            why = "twice" if name in names else f"which is not an operator{did_you_mean(name, names)}"
            raise BadInput(f"outputs has {name!r}{' ' if name in names else ', '}{why}")
    for number in unread:
        if names[number] not in outputs:
            raise BadInput(
                f"nobody reads operator {names[number]!r}; name it in the from of a later operator, or in outputs"
            )
    return sorted(names.index(name) for name in outputs)


def _backward(names: Sequence[str], reads: Sequence[tuple[str, ...] | None], at: int, read: str) -> str:
    """Why an operator cannot read itself or a later one."""
    path, pending, seen = [read], [[read]], {read}
    while pending:
        path = pending.pop()
        if path[-1] == names[at]:
            return f"operators read each other in a cycle: {' <- '.join([names[at], *path])}"
        number = names.index(path[-1])
        known = reads[number]
        for each in (names[number - 1],) if known is None and number else known or ():
            if each in names and each not in seen:
                seen.add(each)
                pending.append([*path, each])
    return f"operator {names[at]!r} reads {read!r}, which comes later; move [[operator]] {read!r} before it"
