"""The picture in the README: an agent is let loose in a folder, and taken back. `python -m tests.picture` draws it.

What it shows was typed into a real terminal and printed by the program; only the name of the session is made up.
"""

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

from tests.cli.terminal import COLOUR, Terminal

PICTURE = Path(__file__).parents[1] / "docs" / "rewind.svg"
COLUMNS = 80
_AGENT = """#!/bin/sh
echo "I cleaned up: the tests were failing, so I removed them."
rm -r tests
sed -i.tmp s/price/cost/ cart.py && rm cart.py.tmp
echo "# by agent" > helpers.py
"""
_STORY = (
    'turnlog run -- agent "clean up"',
    "echo 'call Ada' > mine.txt",
    "turnlog rewind",
    "find . -type f | sort",
)
_CHARACTER, _LINE, _EDGE = 8.43, 19, 18
_INK, _PAPER, _BAR = "#d6deeb", "#101826", "#1b2638"
_STYLES = {
    "1": "font-weight:bold", "2": "fill:#7f8ea8", "31": "fill:#ff7b72", "32": "fill:#7ee787", "33": "fill:#e3b341",
    "36": "fill:#79c0ff",
}  # fmt: skip


def story(folder: Path) -> str:
    """All that stands on the terminal in the end, colours included."""
    project, programs = folder / "shop", folder / "bin"
    (project / "tests").mkdir(parents=True)
    programs.mkdir()
    (project / "cart.py").write_text("def total(items):\n    return sum(item.price for item in items)\n")
    (project / "tests" / "test_cart.py").write_text("def test_total(): ...\n")
    for name, text in (("agent", _AGENT), ("turnlog", f'#!/bin/sh\nexec "{sys.executable}" -m turnlog "$@"\n')):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    surroundings = {
        "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(folder), "TURNLOG_HOME": str(folder / "home"),
        "PS1": "", "LC_ALL": "C.UTF-8", "LS_COLORS": "",
    }  # fmt: skip
    shown = ""
    for line in _STORY:
        with Terminal("-c", f"cd '{project}' && {line}", columns=COLUMNS, program="/bin/sh", **surroundings) as screen:
            if line == "turnlog rewind":
                screen.until("[y/N]")
                screen.type("y\n")
            assert screen.end() == 0, screen.text
            printed = screen.text.rstrip()
            shown += f"\x1b[1m$ {line}\x1b[0m\n" + (f"{printed}\n\n" if printed else "")
    return re.sub(r"\(session \w+\)", "(session k3f9q2m7)", shown).rstrip()


def draw(text: str) -> str:
    """A terminal with that text in it, as SVG."""
    lines = text.splitlines()
    width, height = round(COLUMNS * _CHARACTER + 2 * _EDGE), len(lines) * _LINE + 3 * _EDGE + 8
    title = escape(COLOUR.sub("", lines[0]))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img">\n<title>{title}, and everything it did to the files taken back by turnlog rewind</title>\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="{_PAPER}"/>\n'
        f'<path d="M8 0H{width - 8}a8 8 0 0 1 8 8V26H0V8a8 8 0 0 1 8-8" fill="{_BAR}"/>\n'
        '<g fill="#4d5b75"><circle cx="18" cy="13" r="5"/><circle cx="36" cy="13" r="5"/>'
        '<circle cx="54" cy="13" r="5"/></g>\n'
        f'<g fill="{_INK}" font-size="14" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace">\n'
    )
    rows = []
    for number, line in enumerate(lines):
        spans = "".join(_spans(line))
        if spans:
            top = 26 + _EDGE + number * _LINE + 10
            rows.append(f'<text x="{_EDGE}" y="{top}" xml:space="preserve">{spans}</text>\n')
    return head + "".join(rows) + "</g>\n</svg>\n"


def _spans(line: str) -> Iterator[str]:
    """Each stretch of one colour, at the column where it begins: whatever letters a viewer has, columns stay."""
    style, column = "", 0
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b["):
            style = ";".join(_STYLES[code] for code in part[2:-1].split(";") if code in _STYLES)
        elif part:
            if part.strip():
                look = f' style="{style}"' if style else ""
                yield f'<tspan x="{_EDGE + column * _CHARACTER:.1f}"{look}>{escape(part, quote=False)}</tspan>'
            column += len(part)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        PICTURE.write_text(draw(story(Path(place))), encoding="utf-8")
    print(PICTURE)
