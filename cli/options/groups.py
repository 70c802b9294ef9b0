"""Option groups: dataclasses whose fields are options, or keys of one."""

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from functools import cache, partial, wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import typer

from adapt.cli.terminal.effect import Effect, Typed
from adapt.cli.terminal.help import GivenOnce, Key, choices_of, show_all, value_of
from adapt.cli.terminal.usage import usage_sentence
from adapt.core.errors import UsageError, did_you_mean
from adapt.core.units.settings import Unit
from adapt.traces.locations.location import location

Command = TypeVar("Command", bound=Callable[..., Any])
Value = TypeVar("Value")

KEY = "[A-Za-z_][A-Za-z0-9_-]*="
"""Pattern of the beginning of a key with a value."""


@dataclass(frozen=True)
class Overrides:
    """Marks a dictionary of the given settings of a class."""

    of: type


@dataclass(frozen=True)
class Several:
    """Marks an argument whose typed values become one."""

    of: type  # type of what is typed
    joined: Callable[[list[Any]], Any]  # makes the value


def grouped(command: Command) -> Command:
    """A command whose dataclass parameters become options, one per field.

    A field is a `setting`, or annotated as an option of typer (`Annotated[int, option("Workers.", "N")]`). A group may
    hold groups. Groups are frozen, so a command's groups are values that read and check themselves. A group's `PANEL`
    is the heading in the help of those of its options that name no other; `NEEDS` and `UNLESS` are of all of them.

    A group with an `OPTION` is that one option, and its fields are the keys: `--network latency=70us,bandwidth=1Gbps`.
    The field of its `HEAD`, if it has one, is typed before them: `--shed 5000@100ms:min-drop=0.1`. A key with `of` is
    for these heads alone. A `list` of such a group has one for each time that the option is typed. With a field `OWN`,
    a head that is not `BUILT_IN` is a user's own, and this field has its keys.
    """
    signature = inspect.signature(command)
    kinds = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    options: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        kind, default = kinds[name], parameter.default
        if is_dataclass(kind) or _keyed(kind) is not None:
            options += _options_of(kind)
        elif isinstance(default, Field):
            options.append(_option_of(name, kind, default))
        else:
            options.append(parameter.replace(annotation=_typed(kind), kind=inspect.Parameter.KEYWORD_ONLY))
    options.append(_help_all(hidden=not hasattr(command, "short_help")))

    @wraps(command)
    def call(**values: Any) -> Any:
        return command(**{name: _made(kind, name, values) for name, kind in kinds.items()})

    call.__dict__["__signature__"] = inspect.Signature(options)
    call.__annotations__ = {option.name: option.annotation for option in options}
    call.__dict__["keyed"] = {
        each.OPTION: partial(keys_of, each) for kind in kinds.values() for each in _all_keyed(kind)
    }
    call.__dict__["effects"] = {each.name: Effect.of(_about(each)) for each in options}
    call.__dict__["check_effects"] = _check_effects
    call.__dict__["several"] = {name for name, kind in kinds.items() if _several(kind) is not None}
    return cast(Command, call)


def short_help(*options: str) -> Callable[[Command], Command]:
    """Select the options that `--help` shows, in order, by parameter name.

    `--help-all` shows every option.
    """

    def mark(command: Command) -> Command:
        command.__dict__["short_help"] = options
        return command

    return mark


def option(
    help: str,
    metavar: str | None = None,
    *names: str,
    panel: str | None = None,
    shown: bool = True,
    completion: Callable[..., list[str]] | None = None,
    min: float | None = None,
    max: float | None = None,
    **others: Any,
) -> Any:
    """An option of a command, for an annotation.

    Args:
        metavar: What stands for its value.
        names: How it is typed, if not as the field is named.
        panel: Its heading in the help, if not that of the group.
        shown: Whether the help shows its default.
        completion: What a shell offers for a value that was begun.
        others: `needs`, the settings without which it has no effect, and `unless`, those with which it has none, as
            in `Effect`. For typer: `envvar`, a variable of the environment that stands for it; `parser`, what makes
            its value, where a ValueError says what is wrong with it after its name.
    """
    needs, unless = (_settings(others.pop(kind, ())) for kind in ("needs", "unless"))
    about = typer.Option(
        *names,
        help=help,
        metavar=metavar,
        rich_help_panel=panel,
        show_default=shown,
        autocompletion=completion,
        min=min,
        max=max,
        **others,
    )
    about.needs, about.unless = needs, unless
    return about


def _settings(of: str | tuple[str, ...]) -> tuple[str, ...]:
    """Settings as options; names of settings in core have no dashes."""
    given = (of,) if isinstance(of, str) else of
    return tuple(re.sub(r"(^| or | without )(?=\w)", r"\1--", each) for each in given if each)


def setting(
    default: Value, help: str, metavar: str | None = None, *names: str, of: tuple[str, ...] = (), **others: Any
) -> Value:
    """An option with a default, as a dataclass field or parameter.

    Args:
        of: The heads of the option that it is a key for; empty, all.
    """
    return field(default=default, metadata={"option": option(help, metavar, *names, **others), "of": of})


def keys_of(group: Any) -> list[Key]:
    """The keys of a group that is one option."""
    of = defaultdict(tuple, {each.name: each.metadata.get("of", ()) for each in fields(group)})
    about = {each.name: _about(each) for each in _fields_of(group)}
    return [
        Key(
            each.opts[0].removeprefix(f"{group.OPTION} "),
            of[each.name],
            each,
            Effect.of(about[each.name], each.opts[0]),
        )
        for each in _command_of_keys(group).params
        if each.opts[0] != group.OPTION
    ]


def _several(kind: Any) -> Several | None:
    """How several typed values of a parameter become one; None if it takes one."""
    return next((each for each in get_args(kind) if isinstance(each, Several)), None)


def _typed(kind: Any) -> Any:
    """The annotation of what is typed for a parameter."""
    several = _several(kind)
    if several is None:
        return kind
    listed, (whole, *about) = list[several.of], get_args(kind)  # type: ignore[name-defined]
    return cast(Any, Annotated)[(listed | None if NoneType in get_args(whole) else listed, *about)]


def _help_all(*, hidden: bool) -> inspect.Parameter:
    """The option `--help-all`; hidden where `--help` shows every option."""
    about = typer.Option(
        "--help-all", help="Show every option and exit.", is_eager=True, callback=show_all, hidden=hidden
    )
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter("help_all", kind, default=False, annotation=Annotated[bool, about])


def _options_of(group: Any) -> list[inspect.Parameter]:
    """The options of a group, in the order of its fields."""
    keyed = _keyed(group)
    options = _fields_of(group) if keyed is None else [_option_of_keys(keyed, required=keyed is group)]
    for each in options:
        about = _about(each)
        about.needs = (*Effect.of(about).needs, *_settings(getattr(keyed or group, "NEEDS", ())))
        about.unless = (*Effect.of(about).unless, *_settings(getattr(keyed or group, "UNLESS", ())))
    return options


def _about(option: inspect.Parameter) -> Any:
    return getattr(option.annotation, "__metadata__", (None,))[-1]


def _fields_of(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    options: list[inspect.Parameter] = []
    for each in fields(group):
        kind = hints[each.name]
        if each.name == getattr(group, "OWN", None) or not _is_typed(each, kind):
            continue
        if (others := _overrides(kind)) is not None:
            of = get_type_hints(others)
            options += [_option_of(one.name, of[one.name], one, others, unset=True) for one in _knobs(others)]
            continue
        is_group = is_dataclass(kind) or _keyed(kind) is not None
        options += _options_of(kind) if is_group else [_option_of(each.name, kind, each, group)]
    return options


def _overrides(kind: Any) -> Any:
    """The class of settings that a dictionary overrides; None for another type."""
    return next((each.of for each in get_args(kind) if isinstance(each, Overrides)), None)


def _all_fields(group: Any) -> Iterator["Field[Any]"]:
    """The fields of a group, and those that it overrides."""
    yield from fields(group)
    for kind in get_type_hints(group, include_extras=True).values():
        if (others := _overrides(kind)) is not None:
            yield from _knobs(others)


def _knobs(kind: Any) -> list["Field[Any]"]:
    return [each for each in fields(kind) if "knob" in each.metadata]


def _is_typed(field: "Field[Any]", kind: Any) -> bool:
    """Whether a field of a group can be typed."""
    return bool(field.metadata) or is_dataclass(kind) or _keyed(kind) is not None or get_origin(kind) is Annotated


def _keyed(kind: Any) -> Any:
    """The group of a type that is one option; None if it has none."""
    groups = (kind, *(get_args(kind) if get_origin(kind) in (list, Union, UnionType) else ()))
    return next((each for each in groups if is_dataclass(each) and hasattr(each, "OPTION")), None)


def _all_keyed(kind: Any) -> Iterator[Any]:
    """The groups within a type that are one option each."""
    if (keyed := _keyed(kind)) is not None:
        yield keyed
    elif is_dataclass(kind):
        for each in get_type_hints(kind, include_extras=True).values():
            yield from _all_keyed(each)


def _option_of_keys(group: Any, *, required: bool) -> inspect.Parameter:
    """The option whose keys are the fields of a group.

    Args:
        required: Whether it must be typed, if its head has no default.
    """
    help, metavar, texts, heads = getattr(group, "HELP", ""), "KEY=VALUE", cast(Any, list[str] | None), ""
    default: Any = None
    for each in _command_of_keys(group).params:
        if each.opts[0] == group.OPTION:
            heads = choices_of(each)
            help = f"{each.help}{f' One of {heads}.' if heads else ''}"
            metavar = f"{value_of(each)}[:{metavar}]"
            texts = list[Path] if each.type_descriptor.is_path else texts
            default = inspect.Parameter.empty if each.required and required else None

    def complete(incomplete: str) -> list[str]:
        last = re.split("[:,]", incomplete)[-1]
        before = incomplete.removesuffix(last)
        names = [f"{key.name}{'' if key.parameter.is_flag else '='}" for key in keys_of(group)]
        names += (
            []
            if before
            else [*filter(None, heads.split(", ")), *getattr(group, "BUILT_IN", getattr(group, "HEADS", ()))]
        )
        return [f"{before}{name}" for name in names if name.startswith(last)]

    names, panel = [group.OPTION, *getattr(group, "SHORT", ())], getattr(group, "PANEL", None)
    about = option(help, metavar, *names, panel=panel, completion=complete)
    kind = inspect.Parameter.KEYWORD_ONLY
    annotation = cast(Any, Annotated)[texts, about]
    return inspect.Parameter(_parameter_of(group), kind, default=default, annotation=annotation)


def _parameter_of(group: Any) -> str:
    """The parameter of a group that is one option."""
    return str(group.OPTION[2:].replace("-", "_"))


@cache
def _command_of_keys(group: Any) -> Any:
    """A command whose options are the keys of a group.

    So keys have types, checks and help as options do.
    """
    options = _fields_of(group)
    for each in options:
        about = _about(each)
        about.param_decls = (typed_name(group, each.name),)

    def keys(**values: Any) -> dict[str, Any]:
        return values

    keys.__dict__["__signature__"] = inspect.Signature(options)
    keys.__annotations__ = {each.name: each.annotation for each in options}
    app = typer.Typer(add_completion=False)
    app.command(cls=GivenOnce)(keys)
    return typer.main.get_command(app)


def _read(group: Any, texts: list[Any]) -> Any:
    """A group from what was typed for its option."""
    keys = {key.name: key for key in keys_of(group)}
    words, typed, own = [], [], dict[str, str]()
    for text in map(str, texts):
        head, *pairs = _parts(keys.values(), text)
        if head and not hasattr(group, "HEAD"):
            raise UsageError(f"{group.OPTION} takes KEY=VALUE (got {text!r}){did_you_mean(head, keys)}")
        words += [f"{group.OPTION}={head}"] if head else []
        takes_own = head and head not in getattr(group, "BUILT_IN", (head,))
        for name, equals, value in (pair.partition("=") for pair in pairs):
            spelled = name.replace("_", "-")
            if takes_own and (spelled not in keys or keys[spelled].of):
                own[name] = value
                continue
            if spelled not in keys:
                raise UsageError(f"{group.OPTION} has no key {name!r}{did_you_mean(spelled, keys)}")
            words.append(f"{group.OPTION} {spelled}{equals}{value}")
            typed.append(keys[spelled])
    command = _command_of_keys(group)
    needed = next((value_of(each) for each in command.params if each.required and each.opts == [group.OPTION]), None)
    if needed and texts and not any(word.startswith(f"{group.OPTION}=") for word in words):
        raise UsageError(f"{group.OPTION} needs a value, {needed}, before its keys")
    try:
        values = command.invoke(command.make_context(group.OPTION, words))
        made = _filled(group, {**values, getattr(group, "OWN", ""): own})
    except typer.BadParameter as error:
        raise UsageError(usage_sentence(error)) from error
    for each in typed:
        if each.of and getattr(made, group.HEAD) not in each.of:
            raise UsageError(
                f"{group.OPTION} {each.name} is for {' or '.join(each.of)}; write {group.OPTION} {each.spelled}"
            )
    return made


def _option_of(
    name: str, kind: Any, field: "Field[Any]", group: Any = None, *, unset: bool = False
) -> inspect.Parameter:
    """The option of a field, under the heading of its group; `unset` without its default."""
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    said = field.metadata.get("knob")
    if unset:
        kind, default = kind | None, None
    if said is not None:
        shown = "(default" not in said.help
        about = option(said.help, said.placeholder, panel=said.panel, shown=shown, needs=said.needs, unless=said.unless)
        about.param_decls = (f"--{said.name(name)}",)
        if said.unit is not None:
            kind, about.parser = str if default is inspect.Parameter.empty else str | None, _parser(said.unit)
        if said.unit is not None and isinstance(default, float | int | None):
            default = said.unit.none if default is None else said.unit.write(default)
    else:
        kind, about = (kind, field.metadata["option"]) if field.metadata else get_args(kind)
        about = copy(about)
    about.rich_help_panel = about.rich_help_panel or getattr(group, "PANEL", None)
    annotation = cast(Any, Annotated)[kind, about]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _parser(unit: Unit) -> Callable[[str], Any]:
    """What reads an amount that is typed."""

    def parsed(text: str) -> Any:
        try:
            return unit.read(text)
        except UsageError as error:
            raise ValueError(error) from error

    return parsed


def typed_name(group: type, name: str) -> str:
    """The option, or its key, that sets a field."""
    keyed = _keyed(get_type_hints(group, include_extras=True).get(name))
    if keyed is not None:
        return str(keyed.OPTION)
    declared = next((each for each in _all_fields(group) if each.name == name), None)
    said = declared and declared.metadata.get("knob")
    word = said.name(name) if said else name.replace("_", "-")
    option = getattr(group, "OPTION", "")
    if not option or " " in word:
        return f"--{word}"
    return option if name == getattr(group, "HEAD", None) else f"{option} {word}"


def _made(kind: Any, name: str, values: dict[str, Any]) -> Any:
    """The value of one parameter: a group from its options, or the option itself, a path as a location."""
    if (keyed := _keyed(kind)) is not None:
        texts = values[_parameter_of(keyed)] or []
        if get_origin(kind) is list:
            return [_read(keyed, [each]) for each in texts]
        return _read(keyed, texts) if keyed is kind or texts else None
    if is_dataclass(kind):
        return _filled(kind, values)
    if (others := _overrides(kind)) is not None:
        given = {each.name: values[each.name] for each in _knobs(others)}
        return {each: value for each, value in given.items() if value is not None}
    value = values[name]
    if (several := _several(kind)) is not None:
        return several.joined([location(each) if several.of is Path else each for each in value]) if value else None
    if isinstance(value, list):
        return [location(each) if isinstance(each, Path) else each for each in value]
    return location(value) if isinstance(value, Path) else value


def _filled(group: Any, values: dict[str, Any]) -> Any:
    """A group whose fields are these values."""
    hints = get_type_hints(group, include_extras=True)
    own = getattr(group, "OWN", None)
    typed = (each for each in fields(group) if each.name == own or _is_typed(each, hints[each.name]))
    return group(**{each.name: _made(hints[each.name], each.name, values) for each in typed})


def _parts(keys: Iterable[Key], text: str) -> list[str]:
    """What is typed for an option with keys: its head, and each key with its value."""
    flags = [key.name for key in keys if key.parameter.is_flag]
    key = "|".join([KEY, *(rf"{name}(?![^,])" for name in flags)])
    return re.split(rf"(?:^|[:,])(?={key})", text)


def _check_effects(context: Any) -> None:
    """Refuse options of a parsed command line that cannot act."""
    keyed, declared = context.command.callback.keyed, context.command.callback.effects
    effects, values = list[Effect](), dict[str, tuple[str, ...]]()
    for each in context.command.params:
        source = context.get_parameter_source(each.name)
        is_option = each.param_type_name == "option"
        name = max(each.opts, key=len) if is_option else str(each.metavar).partition("|")[0]
        if is_option and source is not None and source.name == "COMMANDLINE":
            effects.append(replace(declared[each.name], option=name))
        value = context.params.get(each.name)
        texts = [str(getattr(one, "value", one)) for one in (value if isinstance(value, list) else [value]) if one]
        if name in keyed:
            keys = keyed[name]()
            parts = [_parts(keys, text) for text in texts]
            texts = [head for head, *_ in parts if head]
            typed = [pair.partition("=") for _, *pairs in parts for pair in pairs]
            of = {key.replace("_", "-"): (text,) for key, _, text in typed}
            effects += [key.effect for key in keys if key.name in of]
            values |= {f"{name}:{key.name}": of.get(key.name, ()) for key in keys}
        values[name] = tuple(part for text in texts for part in text.split(","))
    Typed(effects, values).check()
