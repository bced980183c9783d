"""The words behind a command as keywords for its function. Imports nothing heavy.

Raises `UsageError` for words that the command does not take.
"""

from __future__ import annotations

from turnlog.cli.frame.exitcode import UsageError
from turnlog.errors import TurnlogError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from turnlog.cli.frame.command import Argument, Command, Option

_LARGEST = 2**63 - 2
"""The largest whole number of an option: one more is the most for databases and slices. Cursors come close to it."""
_NAMING = frozenset(("session", "deleted", "file", "folder"))
"""Kinds of words that name something. An empty one comes from an unset variable, and names nothing."""


def parsed(command: Command, words: Sequence[str]) -> dict[str, Any]:
    """Return what these words mean to that command, by the name of each argument and option."""
    flags = {flag: option for option in command.options for flag in (*option.flags, *option.off.split())}
    values: dict[str, Any] = {option.name: option.default for option in command.options}
    given: set[str] = set()
    positional: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            positional.extend(rest)
        elif word == "-" or not word.startswith("-"):
            positional.append(word)
            if any(argument.takes_rest for argument in command.arguments):
                positional.extend(rest)
        elif (pairs := _split(word, flags, command)) is None:
            positional.append(word)
        else:
            for flag, attached in pairs:
                option = flags[flag]
                if option.repeated_hint and option.name in given:
                    raise UsageError(f"option '{flag}' is given twice", hint=option.repeated_hint)
                value = _value(option, flag, attached, rest)
                values[option.name] = (*values[option.name], value) if option.is_repeatable else value
                given.add(option.name)
    if not values.get("help"):
        missing = next((one for one in command.options if one.is_required and one.name not in given), None)
        if missing is not None:
            raise UsageError(f"missing option '{missing.flags[0]}'")
        for group in command.exclusive:
            chosen = [flag for flag in group if flags[flag].name in given]
            if len(chosen) > 1:
                raise UsageError(f"{chosen[0]} and {chosen[1]} do not go together", hint="leave one of them out")
        values.update(_arguments(command, positional))
    return values


def own_words(command: Command, words: Sequence[str]) -> list[str]:
    """Return the words that are this command's own: not those behind `--`, nor those of a program that it starts."""
    takes_rest = any(argument.takes_rest for argument in command.arguments)
    own: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--" or (takes_rest and not word.startswith("-")):
            break
        own.append(word)
        if option_awaiting_value(command, word) is not None:
            next(rest, None)
    return own


def option_awaiting_value(command: Command, word: str) -> Option | None:
    """Return the option whose value is the word behind this one: `--limit`, `-n`, or the last one in `-an`."""
    flags = {flag: option for option in command.options for flag in option.flags}
    if word in flags:
        return flags[word] if flags[word].value else None
    if not word.startswith("-") or word.startswith("--"):
        return None
    for index, letter in enumerate(word[1:], start=2):
        option = flags.get(f"-{letter}")
        if option is None:
            return None
        if option.value:
            return option if index == len(word) else None
    return None


def _split(word: str, flags: dict[str, Option], command: Command) -> list[tuple[str, str | None]] | None:
    """The flags in a word, each with a value that is attached to it; None if it is a word for an argument."""
    flag, equals, value = word.partition("=")
    if flag in flags:
        return [(flag, value if equals else None)]
    takes_dashes = any(argument.takes_dashed_words for argument in command.arguments) and not word.startswith("--")
    pairs: list[tuple[str, str | None]] = []
    if not word.startswith("--"):
        for index in range(1, len(word)):
            flag = f"-{word[index]}"
            if flag not in flags:
                break
            if flags[flag].value:  # -n5
                attached = word[index + 1 :]
                if takes_dashes and not _is_value(flags[flag], attached):
                    return None
                return [*pairs, (flag, attached or None)]
            pairs.append((flag, None))
        else:
            return pairs
    if takes_dashes:
        return None
    raise _unknown(flag, flags)


def _is_value(option: Option, text: str) -> bool:
    """Whether text behind a flag is meant as its value, where a word with a dash may be one to leave out."""
    if option.number is not None:
        return not text or text.isdecimal()
    return not text or text.startswith(("/", ".", "~"))


def _unknown(flag: str, flags: dict[str, Option]) -> UsageError:
    from difflib import get_close_matches

    usual = [name for name, option in flags.items() if not option.is_hidden and name.startswith("--")]
    near = get_close_matches(flag, usual, n=1, cutoff=0.7)
    return UsageError(f"no such option {flag!r}" + (f". Did you mean {near[0]!r}?" if near else ""), candidates=near)


def _value(option: Option, flag: str, attached: str | None, rest: Iterator[str]) -> Any:
    if not option.value:
        if attached is not None:
            raise UsageError(f"option '{flag}' does not take a value")
        return flag != option.off
    text = next(rest, None) if attached is None else attached
    if text is None:
        raise UsageError(f"option '{flag}' requires an argument")
    try:
        return _converted(option, text)
    except ValueError as error:
        raise UsageError(f"invalid value for '{flag}': {error}") from None
    except TurnlogError as error:
        raise UsageError(f"invalid value for '{flag}': {error.message}: {error.hint}") from None


def _converted(option: Option, text: str) -> Any:
    if option.number is not None:
        return _number(option, text)
    _check_choice(option, text)
    # An empty home is the default, as an empty $TURNLOG_HOME is.
    if not text and option.kind in _NAMING and option.name != "home":
        raise ValueError("it is empty")
    return text if option.read is None else option.read(text)


def _number(option: Option, text: str) -> int | float:
    kind = option.number or int
    try:
        number = kind(text)
    except ValueError:
        raise ValueError(f"{text!r:.80} is not a {'whole ' if kind is int else ''}number") from None
    if kind is int and abs(number) > _LARGEST:
        raise ValueError(f"{text:.40} is too large")
    if option.least is not None and not number >= option.least:
        raise ValueError(f"{number} is not at least {option.least}")
    if option.most is not None and not number <= option.most:
        raise ValueError(f"{number} is not at most {option.most}")
    return number


def _check_choice(parameter: Argument | Option, text: str) -> None:
    if parameter.choices and text not in parameter.choices:
        one_of = "one of " if len(parameter.choices) > 1 else ""
        raise ValueError(f"{text!r:.80} is not {one_of}{', '.join(parameter.choices)}")


def _arguments(command: Command, words: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for argument in command.arguments:
        taken = words if argument.is_repeatable else words[:1]
        words = words[len(taken) :]
        if argument.is_required and not taken:
            raise UsageError(f"missing argument '{argument.shown}'")
        try:
            for word in taken:
                _check_choice(argument, word)
                if not word and not argument.takes_rest and not _NAMING.isdisjoint(argument.kinds):
                    raise ValueError("it is empty")
        except ValueError as error:
            raise UsageError(f"invalid value for '{argument.shown}': {error}") from None
        values[argument.name] = tuple(taken) if argument.is_repeatable else taken[0] if taken else argument.default
    if words:
        raise UsageError(f"got unexpected extra argument{'s' if len(words) > 1 else ''} ({' '.join(words)})")
    return values
