"""A folder with rules of load shedding and their shedder."""

from pathlib import Path

from adapt.core.fit.rules import Rules, rule_file
from adapt.traces.replay import shedder
from adapt.traces.store.atomic import whole_folder


def write_rules(rules: Rules, out: Path, *, force: bool = False) -> None:
    """Write `rules.toml`, and `shedder.py`, which needs Python 3.11 and nothing else."""
    with whole_folder(out, force=force) as folder:
        (folder / "rules.toml").write_text(rule_file(rules), encoding="utf-8")
        (folder / "shedder.py").write_bytes(Path(str(shedder.__file__)).read_bytes())
