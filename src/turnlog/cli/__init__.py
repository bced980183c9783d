"""The command line. `turnlog <name>` is `commands/<name>.py`: found by its file name, imported when it is asked for.

commands/  one file per command
frame/     what every command stands in: arguments, options, exit codes, completion, progress
pick/      the session that is meant, and the catalog: `reader` with a terminal
draw/      what people see: tables, text, colours, sessions on a terminal
demo/      `turnlog demo`, a story told by doing it
setup/     the parts of `turnlog setup`
"""

from __future__ import annotations

import os
import sys

from turnlog.version import __version__


def _printed(line: str) -> bool:
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
        from turnlog.machine.modules import use_own

        use_own()
        from turnlog.live.hook import run

        return run(arguments[1:])
    if arguments == ["statusline"] and sys.stdin is not None and not sys.stdin.isatty():
        from turnlog.cli.statusline import run as show

        return show()
    if arguments == ["--version"] and _printed(f"turnlog {__version__}"):
        return  # needs nothing else, so it waits for nothing else
    if "_TURNLOG_COMPLETE" in os.environ:
        from turnlog.cli.frame.completion import answer

        return answer(os.environ["_TURNLOG_COMPLETE"], arguments)
    import gc

    from turnlog.cli.frame.program import run

    gc.set_threshold(100_000)  # modules and thousands of rows are no garbage, and the process ends soon
    code = run(arguments)
    gc.freeze()  # nor does it need to look through everything once more when it ends
    leave_the_rest()
    sys.exit(code)


def leave_the_rest() -> None:
    """Let other processes make the index and keep what agents would delete, if that is wanted: see `turnlog keep`."""
    from turnlog.cli.frame.home import home_location
    from turnlog.errors import TurnlogError
    from turnlog.machine.deferred import run_deferred
    from turnlog.machine.environment import default_home
    from turnlog.machine.keepstate import keep_going

    run_deferred()
    try:
        keep_going(home_location() or default_home())
    except (TurnlogError, OSError):
        pass  # there is no home to keep anything in; the command said so if that mattered
