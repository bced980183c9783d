"""The command line. `turnlog <name>` is `commands/<name>.py`: found by its file name, imported when it is asked for.

commands/        one file per command
*.py             what several commands share, and the program that runs them
overview/        `turnlog` alone, and the lines of it that other commands have, too
safetynet/       rewinding, checkpoints, lines of files
setup/, demo/    the parts of `turnlog setup`, the chapters of `turnlog demo`
pick/            the session, the agents and the catalog that a command is about
draw/            what people see: tables, text, sessions on a terminal
fields/          what programs get of a session, a hit, a change: fields of JSON, and what fills them
frame/           declaring, parsing and ending a command; JSON documents; the terminal

Each looks only at those below it, and `make check` enforces that.
"""

from __future__ import annotations

import os
import sys

from turnlog.version import __version__


def _print_line(line: str) -> bool:
    """Print a line; False where that fails: the usual way then reports why."""
    try:
        print(line, flush=True)
    except OSError:
        return False
    return sys.stdout is not None  # pyright: ignore[reportUnnecessaryComparison]


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["hook"]:
        from turnlog.machine.modules import restrict_imports

        restrict_imports()
        from turnlog.live.hook import run

        return run(arguments[1:])
    if arguments == ["statusline"] and sys.stdin is not None and not sys.stdin.isatty():
        from turnlog.cli.statusline import run as show

        return show()
    if arguments == ["--version"] and _print_line(f"turnlog {__version__}"):
        return  # needs nothing else, so it waits for nothing else
    if "_TURNLOG_COMPLETE" in os.environ:
        from turnlog.cli.completion import answer

        return answer(os.environ["_TURNLOG_COMPLETE"], arguments)
    import gc

    gc.set_threshold(100_000)  # modules and thousands of rows are no garbage, and the process ends soon
    from turnlog.cli.frame.background import start_background_work
    from turnlog.cli.program import run

    code = run(arguments)
    gc.freeze()  # nor does it need to look through everything once more when it ends
    start_background_work()
    sys.exit(code)
