"""Commands as functions.

Options are keywords, the result is returned, and nothing is printed.

`adapt partition build web.trace --channels 8` is `adapt.build("web.trace", channels=8)`. A function runs its command in
this process, so both give the same results and complain in the same sentences.
"""

import inspect
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from keyword import iskeyword
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from adapt.cli.main import command_tree
from adapt.cli.terminal.command_line import typed
from adapt.cli.terminal.narration import muted
from adapt.cli.terminal.usage import as_key, usage_sentence
from adapt.core.errors import UsageError, did_you_mean
from adapt.inputs import new_trace, path_of
from adapt.traces.sources.frames import is_frame
from adapt.traces.spark.session import active_session_kept

COMMANDS = {
    **{name: name for name in ("check", "clean", "generate", "ingest", "lint", "report", "verdict")},
    **{name: f"partition {name}" for name in ("build", "compare", "count", "diff", "evaluate", "export", "tolerance")},
    **{f"replay.{name}": f"replay {name}" for name in ("compare", "elastic", "fit", "flux", "ordered", "repartition")},
    **{f"advise.{name}": f"advise {name.replace('_', '-')}" for name in ("salts", "which_key", "workers")},
    **{f"calibrate.{name}": f"calibrate {name}" for name in ("flink", "spark")},
    **{f"cluster.{name}": f"cluster {name}" for name in ("check", "pack")},
}
"""The command of each function."""

_PRINTING = {"help_all", "_metrics", "json", "all"}
"""Parameters of commands about what is printed."""


@cache
def command_named(words: str) -> Any:
    """A command, by the words that call it."""
    first, *_ = words.split()
    command = command_tree(first)
    for word in words.split():
        command = command.commands[word]
    return command


def parameters_of(command: Any) -> dict[str, Any]:
    """The parameters of a command as those of its function.

    Arguments come first, then required options, then the main options.
    """
    main = getattr(command.callback, "short_help", ())
    found = [each for each in command.params if each.name not in _PRINTING and not _is_output_format(each)]
    order = {name: at for at, name in enumerate(main)}
    found.sort(key=lambda each: (not _is_argument(each), not each.required, order.get(each.name, len(order))))
    return {_name_of(each): each for each in found}


def signature_of(command: Any) -> inspect.Signature:
    """The signature of a command's function."""
    parameters = []
    for name, each in parameters_of(command).items():
        needed = each.required and not _may_pass(each)
        default = inspect.Parameter.empty if needed or is_variadic(command, each) else each.default
        parameters.append(inspect.Parameter(name, _kind_of(command, each), default=default))
    return inspect.Signature(parameters)


def is_variadic(command: Any, parameter: Any) -> bool:
    """Whether a function takes its values by position, not as one list."""
    return bool(parameter.nargs < 0 and parameter.name not in getattr(command.callback, "several", ()))


def _kind_of(command: Any, parameter: Any) -> Any:
    """How a function takes a parameter: by position, or by name."""
    if not _is_argument(parameter):
        return inspect.Parameter.KEYWORD_ONLY
    return (
        inspect.Parameter.VAR_POSITIONAL if is_variadic(command, parameter) else inspect.Parameter.POSITIONAL_OR_KEYWORD
    )


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _is_output_format(parameter: Any) -> bool:
    return bool(parameter.name == "format" and parameter.default == "table")


def _may_pass(parameter: Any) -> bool:
    """Whether it is the output of a new trace, which a program need not keep."""
    return bool(parameter.name == "out" and parameter.metavar == "TRACE" and parameter.required)


def _long(parameter: Any) -> str:
    return str(next(each for each in parameter.opts if each.startswith("--")))


def _name_of(parameter: Any) -> str:
    name = parameter.name if _is_argument(parameter) else _long(parameter)[2:].replace("-", "_")
    return f"{name}_" if iskeyword(name) else str(name)


def function(name: str) -> Callable[..., Any]:
    """The function of a command."""
    command = command_named(COMMANDS[name])

    def call(*arguments: Any, **options: Any) -> Any:
        return _called(name, command, arguments, options)

    call.__name__ = name.rpartition(".")[2]
    call.__qualname__, call.__module__ = name, "adapt"
    about = inspect.cleandoc(command.help or "").partition("\n\nExample: ")[0]
    rows = [f"    {name}: {each.help}" for name, each in parameters_of(command).items() if each.help]
    call.__doc__ = "\n".join([about, "", f"As `adapt {COMMANDS[name]}`.", "", "Args:", *rows])
    call.__dict__["__signature__"] = signature_of(command)
    return call


def group(name: str) -> SimpleNamespace:
    """The functions of a group of commands."""
    names = [each for each in COMMANDS if each.startswith(f"{name}.")]
    return SimpleNamespace(**{each.rpartition(".")[2]: function(each) for each in names})


def _called(name: str, command: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Run a command with these values and return its result.

    Raises:
        AdaptError: as the command.
    """
    known = parameters_of(command)
    try:
        bound = signature_of(command).bind_partial(*arguments, **options).arguments
    except TypeError as error:
        strange = [each for each in options if each not in known]
        if strange:
            key = as_key(command, f"--{strange[0].replace('_', '-')}")
            hint = f"; write {key}" if key else did_you_mean(strange[0], known)
            raise UsageError(f"{name} has no option {strange[0]!r}{hint}") from error
        raise UsageError(f"{name}: {error}") from error
    with tempfile.TemporaryDirectory(prefix="adapt-") as folder, muted(), active_session_kept():
        is_table = is_frame(bound.get("source")) or {"sql", "table"} & {*bound}
        passes = "out" in known and (_may_pass(known["out"]) or is_table)
        if passes and bound.get("out") is None:
            bound["out"] = new_trace()
        words, objects = _words(known, bound, Path(folder))
        with typed([*COMMANDS[name].split(), *words]):
            try:
                context = command.make_context(COMMANDS[name], words)
            except Exception as error:
                if hasattr(error, "format_message"):  # of the option parser
                    raise UsageError(usage_sentence(error)) from error
                raise
            context.params.update(objects)
            with context:
                return command.invoke(context)


def _words(known: Mapping[str, Any], bound: Mapping[str, Any], folder: Path) -> tuple[list[str], dict[str, Any]]:
    """Values as typed words, and those that no words can say, by parameter."""
    words: list[str] = []
    last: list[str] = []
    objects: dict[str, Any] = {}
    for name, value in bound.items():
        parameter = known[name]
        texts = list(_texts(parameter, value, folder))
        if any(map(is_frame, _each(value))) and str(parameter.metavar).startswith("SOURCE"):
            objects[parameter.name] = list(_each(value))
        if _is_argument(parameter):
            last += texts
        elif parameter.is_flag:
            flags = {"True": parameter.opts, "False": parameter.secondary_opts}
            words += [each for text in texts for each in flags[text] if each.startswith("--")][:1]
        else:
            words += [f"{_long(parameter)}={text}" for text in texts]
    return [*words, *(["--", *last] if last else [])], objects


def _texts(parameter: Any, value: Any, folder: Path) -> Iterator[str]:
    """A value as typed: one text, or one for each of several values."""
    if value is None:
        return
    several = parameter.multiple or parameter.nargs < 0
    if isinstance(value, Mapping) and parameter.multiple:
        value = [key if each is True else f"{key}={each}" for key, of in value.items() for each in _each(of)]
    if parameter.name == "key" and isinstance(value, (list, tuple)) and not several:
        from adapt.traces.ingest.mapping import key_text

        yield key_text(value)
        return
    if isinstance(value, (list, tuple, range)) and not several:
        yield ",".join(path_of(each, parameter, folder) if _is_argument(parameter) else str(each) for each in value)
        return
    for each in _each(value):
        if isinstance(each, partial):
            (code,) = _texts(parameter, each.func, folder)
            yield f"{code}:{','.join(f'{name}={given}' for name, given in each.keywords.items())}"
            continue
        is_code = inspect.isclass(each) or inspect.isfunction(each)
        yield f"{each.__module__}:{each.__qualname__}" if is_code else path_of(each, parameter, folder)


def _each(value: Any) -> Iterator[Any]:
    """The value, or the values of lists in it."""
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from _each(each)
    else:
        yield value
