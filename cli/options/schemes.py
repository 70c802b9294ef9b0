"""Types of options that take a scheme: one of ours, or an engine's placement."""

from typing import TYPE_CHECKING, Literal, TypeAlias

from adapt.core.engines.names import CURRENT_SCHEMES, SCHEMES_BY_NAME, AnyScheme

if TYPE_CHECKING:
    SchemeChoice: TypeAlias = AnyScheme
    CurrentSchemeChoice: TypeAlias = AnyScheme
else:  # typer takes the choices of an option from an enumeration or a Literal, and from no union
    SchemeChoice = Literal[tuple(SCHEMES_BY_NAME.values())]
    CurrentSchemeChoice = Literal[CURRENT_SCHEMES]
