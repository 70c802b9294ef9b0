"""Line numbers of faults in a TOML file."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_HEADER = re.compile(r"\s*\[{1,2}\s*(\w+)\s*\]{1,2}")
_FIELD = re.compile(r"\s*(\w+)\s*=\s*(?:[\"'](.*?)[\"'])?")


@dataclass(frozen=True, slots=True)
class _Block:
    """One table of the file: its line, and line and text of its fields."""

    kind: str
    line: int
    fields: dict[str, tuple[int, str]]

    def names(self) -> tuple[str, ...]:
        """How a fault may begin that is about this table."""
        if self.kind == "link":
            ends = (self.fields.get(end, (0, "?"))[1] for end in ("from", "to"))
            return (f"link '{' to '.join(ends)}'",)
        if "name" not in self.fields:
            return (self.kind if self.kind == "settings" else f"one [[{self.kind}]]",)
        name = f"'{self.fields['name'][1]}'"
        merged = (f"input or operator {name}",) if self.kind in ("input", "operator") else ()
        return (f"{self.kind} {name}", *merged)


def with_lines(text: str, faults: Sequence[str]) -> str:
    """All faults in one sentence, in the order of their lines.

    Args:
        text: Of the file.
        faults: Each begins with the element that it is about.
    """
    blocks = _blocks(text)
    placed = sorted(((_line_of(blocks, fault), fault) for fault in dict.fromkeys(faults)), key=lambda each: each[0])
    said = [f"line {line}: {fault}" if line else fault for line, fault in placed]
    if len(said) == 1:
        return said[0]
    return f"{len(said)} mistakes: {'; '.join(f'({number}) {each}' for number, each in enumerate(said, 1))}"


def _blocks(text: str) -> list[_Block]:
    blocks: list[_Block] = []
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            blocks.append(_Block(header[1], number, {}))
        elif blocks and (field := _FIELD.match(line)):
            blocks[-1].fields.setdefault(field[1], (number, field[2] or ""))
    return blocks


def _line_of(blocks: Sequence[_Block], fault: str) -> int:
    """The line of the last element that a fault begins with, and of the first of its fields in it; 0 if unknown."""
    about = [(block, name) for block in blocks for name in block.names() if re.match(rf"{re.escape(name)}\W", fault)]
    if not about:
        return next((block.line for block in blocks if f"field {block.kind!r}" in fault), 0)
    block, name = about[-1]
    words = {"reads": "inputs" if block.kind == "operator" else "from"}
    said = [words.get(word, word) for word in re.findall(r"\w+", fault[len(name) :])]
    return next((block.fields[word][0] for word in said if word in block.fields), block.line)
