"""The page of engines, from their definitions.

python -m tools.engines        # writes docs/engines.md
"""

from collections.abc import Iterator
from pathlib import Path

from adapt.core.engines.names import Engine, Target
from adapt.core.engines.registry import definition_of

PAGE = Path(__file__).parent.parent / "docs" / "engines.md"

_HEAD = """# Engines

An engine's name goes with `--scheme`, `--engine` and, where the engine takes a plan, with `partition export --to`
([deploying a plan](deploy.md)). Made from the program by `python -m tools.engines`; a test holds that this page is what
the program says now.

| name | channel | worker | channels by default | key groups | export |
|---|---|---|---|---|---|
"""


def engines_page() -> str:
    """The whole page."""
    rows = "".join(_row(engine) for engine in Engine)
    return _HEAD + rows + "".join(f"\n## {definition_of(each).title}\n\n" + "".join(_facts(each)) for each in Engine)


def _row(engine: Engine) -> str:
    known = definition_of(engine)
    limits = known.key_groups
    groups = f"at most {limits.most:,}{', fixed' if limits.fixed else ''}" if limits else "no"
    default = f"{known.default_channels} (`{known.channels_setting}`)"
    export = f"`--to {Target(engine.value)}`" if known.export else "no"
    return f"| `{engine}` | {known.channel} | {known.worker} | {default} | {groups} | {export} |\n"


def _facts(engine: Engine) -> Iterator[str]:
    known = definition_of(engine)
    yield f"- Hash: {known.hash_title}.\n"
    yield f"- Null key: {known.null_key}\n"
    yield f"- Empty key: {known.empty_key}\n"
    yield f"- Rescale: {known.rescale}\n"
    yield f"- Work: {known.units.name}, whole, over {known.units.workers}. {known.units.note}\n"


if __name__ == "__main__":
    PAGE.write_text(engines_page())
    print(f"wrote {PAGE}")
