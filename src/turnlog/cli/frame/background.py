"""Work that a command leaves to processes of their own: the index, and keeping what agents would delete."""

from __future__ import annotations


def start_background_work() -> None:
    """Start processes that make the index and keep what agents would delete, if that is wanted: see `turnlog keep`."""
    from turnlog.cli.frame.home import home_location
    from turnlog.errors import TurnlogError
    from turnlog.machine.deferred import run_deferred
    from turnlog.machine.environment import default_home
    from turnlog.machine.keepstate import keep_going

    try:
        run_deferred()
        keep_going(home_location() or default_home())
    except (TurnlogError, OSError):
        pass  # there is no home to keep anything in; the command said so if that mattered
    except KeyboardInterrupt:
        pass  # the command is done, and the next one lets them do it
