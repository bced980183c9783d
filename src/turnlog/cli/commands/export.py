"""`turnlog export`."""

from __future__ import annotations

import sys

import click

from turnlog.cli.option import look_at, print_json, session_argument, shared, this_home
from turnlog.cli.problem import tell_report
from turnlog.cli.text import one_line
from turnlog.errors import Invalid


@click.command()
@session_argument
@click.option("--to", "agent", required=True, metavar="AGENT", help="For which agent; `turnlog formats` lists them.")
@click.option("--output", "-o", metavar="PATH", help="A file, a folder laid out as the agent does, or - for stdout.")
@click.option("--force", is_flag=True, help="Overwrite what is there.")
@shared
def command(session: str | None, agent: str, output: str | None, force: bool, as_json: bool) -> None:
    """Write a session so that another agent can go on with it.

    It is read back before it is put anywhere, and the report says what was carried, changed and lost. Nothing that is
    there is overwritten without --force. `turnlog resume --in AGENT` puts it where that agent looks for it.

    \b
    turnlog export k3f9 --to rho               a file in this folder
    turnlog export k3f9 --to sofos -o .sofos/sessions/
    """
    from turnlog.session.exports import send, transcript_of, written_for
    from turnlog.session.handover import report_of

    with this_home() as home, look_at(home, session) as found:
        if output == "-":
            if as_json:
                raise click.UsageError("either --json or -o -")
            written, carried = written_for(transcript_of(found), agent)
            if len(written.files) > 1:
                raise Invalid(f"a session of {agent} is several files", hint="give a folder: -o FOLDER/")
            sys.stdout.flush()
            sys.stdout.buffer.write(written.files[0].data)
            tell_report(report_of(written.lost, carried))
            return
        done = send(found, agent, output, force=force)
    report = report_of(done.lost, done.carried)
    if as_json:
        print_json({"agent": agent, "id": done.id, "path": done.path, "report": report})
        return
    print(one_line(done.path))
    tell_report(report)
