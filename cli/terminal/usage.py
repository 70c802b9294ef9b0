"""What the option parser complains about, in our words."""

from typing import Any

from adapt.cli.terminal.help import keyed
from adapt.core.errors import did_you_mean

_OF_PAPERS = {"--alpha": "--tolerance", "--beta": "--resources", "--algorithm": "--construction"}
"""Our options by the names of the papers."""


def usage_sentence(error: Any) -> str:
    """What the option parser complains about."""
    name = getattr(error, "option_name", None)
    instead = as_key(error.ctx.command, name) if name is not None and error.ctx is not None else ""
    if "No such command 'replan'" in str(error):
        return "no such command: replan; write adapt replay repartition --live"
    if "No such command 'keys'" in str(error):
        return "no such command: keys; write adapt advise salts, or adapt advise which-key to choose a key"
    if instead:
        return f"no such option: {name}; write {instead}"
    return _about_value(error) or _first_small(" ".join(str(error.format_message()).split())).rstrip(".?")


def _about_value(error: Any) -> str:
    """What is wrong with an option's value; empty if the parser does not say."""
    errors = getattr(error.__cause__, "errors", None)
    parameter = getattr(error, "param", None)
    if errors is None or parameter is None:
        return ""
    first = errors()[0]
    name, given = parameter.opts[0], str(first["input"])
    choices = getattr(getattr(parameter, "type_descriptor", None), "choices", None)
    if choices:
        return f"{name} has no choice {given!r}{did_you_mean(given, [choice.value for choice in choices])}"
    if parameter.type_descriptor.parameter_info.parser is not None:
        return f"{name} {first['ctx']['error']}"
    limits = {"ge": "at least", "le": "at most"}
    within = [f"{limits[end]} {limit:g}" for end, limit in first.get("ctx", {}).items() if end in limits]
    expected = {"int": "a whole number", "float": "a number"}.get(str(first["type"]).partition("_")[0], *within)
    return f"{name} must be {expected} (got {given!r})" if expected else ""


def _first_small(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def as_key(command: Any, typed: str) -> str:
    """What to type for an unknown option; empty if unknown."""
    ours = _OF_PAPERS.get(typed, "")
    if any(ours in each.opts for each in command.params):
        return ours
    for option, keys in keyed(command).items():
        for key in keys():
            if typed in (f"--{key.name}", f"{option}-{key.name}", f"{option.removesuffix('s')}-{key.name}"):
                return f"{option} {key.spelled.partition('|')[0]}"
    return ""
