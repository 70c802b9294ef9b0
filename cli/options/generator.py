"""Options of `adapt generate`: the rows of a synthetic trace."""

import inspect
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from adapt.cli.options.groups import setting, typed_name
from adapt.core.errors import UsageError
from adapt.core.stream import KeyType
from adapt.core.synthetic.variation import Variation
from adapt.traces.generators.names import GeneratorName

if TYPE_CHECKING:
    from adapt.traces.generators.write import NamedStream

_PARAMETER = {"keys": "domain", "rate": "rate_per_s"}
"""How a generator calls an option's parameter, where the names differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorOptions:
    """What the rows look like.

    An option that is not given keeps the generator's default.
    """

    rows: int = setting(1_000_000, "Rows to generate.", "ROWS")
    keys: int | None = setting(
        None,
        "Number of distinct keys (default: 1000000; packets 10000, calls and clicks 20000, sales 3000 items).",
        "KEYS",
    )
    exponent: float | None = setting(
        None, "Zipf exponent of the keys; 0 is uniform (default: 1; calls and clicks 0.8).", "Z"
    )
    rate: float | None = setting(
        None, "Average rate in rows per second (default: 1000; calls 5, clicks 0.05, sales 0.5).", "ROWS/S"
    )
    start: str = setting("2026-01-01T00:00:00Z", "Time of the first row, ISO 8601.", "TIME")
    key_type: KeyType = setting(KeyType.STRING, "Type of the keys.", "string|int64")
    seed: int = setting(0, "Random seed.", "N")
    variation: Variation

    def stream(self, name: GeneratorName) -> "NamedStream":
        """The synthetic stream."""
        from adapt.traces.generators.registry import GENERATORS

        names = {_PARAMETER.get(each.name, each.name): each.name for each in fields(self)}
        values = {parameter: getattr(self, field) for parameter, field in names.items()}
        chosen = {name: value for name, value in values.items() if value is not None}
        usual = Variation()
        varied = [
            each.name for each in fields(usual) if getattr(self.variation, each.name) != getattr(usual, each.name)
        ]
        if not varied:
            del chosen["variation"]
        for parameter in chosen:
            takers = [str(each) for each in GENERATORS if parameter in inspect.signature(GENERATORS[each]).parameters]
            if name not in takers:
                is_varied = parameter == "variation"
                option = typed_name(Variation, varied[0]) if is_varied else typed_name(type(self), names[parameter])
                raise UsageError(f"{name} does not take {option}, an option of {', '.join(takers)}")
        return GENERATORS[name](**chosen)
