"""Numbers as people read them: how many, how large, how much it cost. Every viewer says them the same way."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnlog.log.usage import Usage

_DONE = {"create": "created", "modify": "modified", "delete": "deleted", "mode": "mode changed"}


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 entry`, `2 entries`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def rewind_outcome(files: dict[str, int]) -> str:
    """What a rewind did to files, and how many it left alone: `2 created, 1 deleted; left alone: 1`."""
    changed = ", ".join(f"{files[action]:,} {word}" for action, word in _DONE.items() if files.get(action))
    left = sum(number for action, number in files.items() if action not in _DONE)
    return (changed or "no file changed") + (f"; left alone: {left:,}" if left else "")


def size(count: int) -> str:
    """A number of bytes, short."""
    value = float(count)
    for unit in ("B", "KB", "MB"):
        if value < 999.5:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 99.95 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def tokens(number: int) -> str:
    """A number of tokens, short: `950`, `12.3k`, `4.5M`."""
    if number < 1_000:
        return str(number)
    for unit, name in ((1e3, "k"), (1e6, "M"), (1e9, "G")):
        if number < 999.5 * unit:
            value = number / unit
            return f"{value:.1f}{name}" if value < 99.95 else f"{value:.0f}{name}"
    return f"{number / 1e12:.1f}T"


def used(usage: Usage) -> str:
    """The tokens of requests, in words."""
    return f"{usage.all_input_tokens:,} tokens in, {usage.output_tokens:,} out"


def dollars(micros: int, *, is_partial: bool = False, whole: bool = False) -> str:
    """Micro-dollars in a column: `$1.23`; `$1.23+` where a part of it has no known price, `?` where nothing has.

    With `whole`, from ten dollars on without the cents.
    """
    if whole and micros >= 9_995_000:
        return f"${micros / 1e6:,.0f}{'+' * is_partial}"
    if 5_000 <= micros < 999_000_000 and not is_partial:
        return f"${micros / 1e6:.2f}"
    if is_partial and not micros:
        return "?"
    more = "+" if is_partial else ""
    if not micros:
        return "$0.00"
    if micros < 5_000:
        return f"<$0.01{more}"
    return f"${micros / 1e6:,.2f}{more}" if micros < 1_000_000_000 else f"${micros / 1e6:,.0f}{more}"


def money(micros: int) -> str:
    """Micro-dollars of one request: cents and more to the cent, less to what can be told apart."""
    digits = 2 if micros >= 995_000 else 3 if micros >= 10_000 else 4 if micros >= 100 else 6
    return f"${micros / 1_000_000:,.{digits}f}"


def rate(price: float | None) -> str:
    """Dollars for a million tokens in a column, to the cent where that is exact; `?` where no price is known."""
    return "?" if price is None else f"{price:,.2f}" if round(price, 2) == price else f"{price:,.4f}"
