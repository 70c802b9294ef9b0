"""Layout of the schemas: what fits in a line stands in one.

Rewrite them with `python -m tools.schemas`.
"""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "docs" / "schemas"
WIDTH = 120


def compact(value: Any, indent: int = 0, before: int = 0) -> str:
    """A value as JSON, in one line where it fits.

    Args:
        indent: Of the line that it begins in.
        before: Characters that stand before it in this line, besides the indent.
    """
    line = json.dumps(value, ensure_ascii=False)
    if indent + before + len(line) < WIDTH or not value or not isinstance(value, dict | list):
        return line
    pad, inner = " " * (indent + 1), indent + 1
    if isinstance(value, list):
        lines = [pad + compact(each, inner) for each in value]
    else:
        names = {name: f"{json.dumps(name, ensure_ascii=False)}: " for name in value}
        lines = [f"{pad}{names[name]}{compact(each, inner, len(names[name]))}" for name, each in value.items()]
    opening, closing = "[]" if isinstance(value, list) else "{}"
    return "\n".join([opening, ",\n".join(lines), " " * indent + closing])


def main() -> None:
    """Rewrite all schemas."""
    for path in sorted(FOLDER.glob("*.json")):
        path.write_text(compact(json.loads(path.read_text())) + "\n")


if __name__ == "__main__":
    main()
