"""`turnlog export`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from turnlog.cli.draw.problem import tell_report
from turnlog.cli.draw.text import one_line
from turnlog.cli.frame import shape
from turnlog.cli.frame.command import print_json, session_argument, shared
from turnlog.cli.frame.shape import REPORT
from turnlog.cli.pick.session import session_to_read
from turnlog.errors import Invalid, NotFound
from turnlog.formats import is_known
from turnlog.formats import names as agents

if TYPE_CHECKING:
    from turnlog.reader.opener import OpenedSession
    from turnlog.view.redact import Redactor

_TEXTS = ("markdown", "html", "json", "jsonl")
_SHORT = {"md": "markdown"}
CHANGES = shape.OTHERS
FIELDS = {
    "path": shape.text("where it was written"),
    "[agent]": shape.text("for which agent"),
    "[id]": shape.text("its id there"),
    "[report]": REPORT,
    "[form]": shape.text("which document, if it is one"),
    "[size_bytes]": shape.number("of the document"),
    "redacted": shape.one(
        "how many secrets of which kind were taken out; null where nothing was looked for", null=True
    ),
}


@click.command()
@session_argument
@click.option("--to", "form", required=True, metavar="FORM", help="markdown (md), html, json, jsonl, or an agent.")
@click.option("--output", "-o", metavar="PATH", help="A file, a folder laid out as the agent does, or - for stdout.")
@click.option("--force", is_flag=True, help="Overwrite what is there.")
@click.option(
    "--redact/--no-redact", "redact", default=None, help="Take secrets out. [default: yes, but not for an agent]"
)
@click.option("--redact-also", "also", metavar="KINDS", help="With the secrets: paths, names, emails, or all three.")
@click.option(
    "--format-version", "version", type=int, metavar="N", help="A newer vocabulary of the agent's. [default: its first]"
)
@click.option("--include-ignored", is_flag=True, help="With what is in ignored files, where files are written at all.")
@click.option("--key", metavar="KEY", help="Which session, where a file of another agent has several: a number or id.")
@shared
def command(
    session: str | None,
    form: str,
    output: str | None,
    force: bool,
    redact: bool | None,
    also: str | None,
    version: int | None,
    include_ignored: bool,
    key: str | None,
    as_json: bool,
) -> None:
    """Write a session for people, for programs, or so that another agent can go on with it.

    Markdown and HTML are the conversation as it is read; the HTML is one file that fetches nothing. JSON and JSON lines
    are every entry, branches included. From these four, API keys, tokens, authorization headers, private keys and
    passwords are taken out, and it is said what: --no-redact leaves them in. For an agent nothing is taken out unless
    --redact is given. --redact-also takes out who you are, too: home folders (paths), the names of their users
    (names), e-mail addresses (emails). Look through what you publish all the same: nobody knows every secret.

    What is written for an agent is read back before it is put anywhere, and the report says what was carried, changed
    and lost. Every release of the agent opens it, unless the session came from a newer one; --format-version asks for
    more, and then the report says which release opens it. Nothing that is there is overwritten without --force.
    Where that agent keeps its own sessions, a copy carries no spending: it counts where it was spent.
    Only Owlen is given what is in files; what is in ignored ones stays here unless --include-ignored.
    `turnlog resume --in AGENT` puts it where that agent looks for it.

    \b
    turnlog export k3f9 --to html              a file in this folder
    turnlog export k3f9 --to markdown -o -     to stdout
    turnlog export k3f9 --to html --redact-also paths,names,emails
    turnlog export k3f9 --to rho
    turnlog export k3f9 --to sofos -o .sofos/sessions/
    """
    if output == "-" and as_json:
        raise click.UsageError("either --json or -o -")
    form = _SHORT.get(form, form)
    if form not in _TEXTS and not is_known(form):
        raise NotFound(f"no form {form!r:.80}", hint=f"one of {', '.join(_TEXTS)}, or an agent: {', '.join(agents())}")
    kinds = _kinds(also, redact)
    with session_to_read(session, key=key) as opened:
        if form in _TEXTS:
            if version is not None:
                raise click.UsageError(f"--format-version is for agents, and {form} is none")
            _write(opened, form, output, kinds, is_redacted=redact is not False, force=force, as_json=as_json)
        else:
            from turnlog.view.redact import Redactor

            redactor = Redactor(kinds) if redact or kinds else None
            _send(opened, form, output, version, include_ignored, redactor, force=force, as_json=as_json)


def _kinds(also: str | None, redact: bool | None) -> tuple[str, ...]:
    """What is to be taken out besides secrets."""
    from turnlog.view.personal import KINDS

    kinds = tuple(dict.fromkeys(also.split(","))) if also is not None else ()
    wrong = next((kind for kind in kinds if kind not in KINDS), None)
    if wrong is not None:
        raise Invalid(f"--redact-also {wrong!r:.40}", hint=f"one or several of {','.join(KINDS)}")
    if kinds and redact is False:
        raise click.UsageError("either --no-redact or --redact-also")
    return kinds


def _write(
    opened: OpenedSession, form: str, output: str | None, also: tuple[str, ...], *, is_redacted: bool, force: bool,
    as_json: bool,
) -> None:  # fmt: skip
    from turnlog.cli.frame.progress import patience
    from turnlog.formats import put_file
    from turnlog.machine.folder import absolute
    from turnlog.reader.document import ENDINGS, notice, write

    with patience():
        written = write(opened, form, is_redacted=is_redacted, also=also)
    told = notice(written.redacted)
    if output == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(written.data)
        sys.stdout.flush()
        print(told, file=sys.stderr)
        return
    name = f"{_file_name(opened.session.handle)}.{ENDINGS[form]}"
    place = Path(absolute(output if output is not None else name))
    if output is not None and (output.endswith("/") or place.is_dir()):
        place = place / name
    path = str(place)
    put_file(path, written.data, mode=0o600, force=force)
    if as_json:
        print_json({"form": form, "path": path, "size_bytes": len(written.data), "redacted": written.redacted})
        return
    print(one_line(path))
    print(told, file=sys.stderr)


def _file_name(handle: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in handle)[:80] or "session"


def _send(
    opened: OpenedSession,
    agent: str,
    output: str | None,
    version: int | None,
    include_ignored: bool,
    redactor: Redactor | None,
    *,
    force: bool,
    as_json: bool,
) -> None:
    from turnlog.exchange.resumable import report_of
    from turnlog.exchange.transcript import notes_on, put, transcript_of, written_for
    from turnlog.formats import format_of
    from turnlog.machine.folder import lies_in_home
    from turnlog.reader.document import without_secrets

    transcript = transcript_of(opened.session, include_ignored=include_ignored)
    if redactor is not None:
        transcript = without_secrets(transcript, redactor)
    is_free = output is not None and lies_in_home(format_of(agent), output)
    written, carried = written_for(transcript, agent, version, is_free=is_free)
    report = report_of(written.lost, carried, notes_on(written))
    told = "not redacted; --redact does"
    if redactor is not None:
        told = f"redacted: {redactor.summary or 'nothing was found'}"
    if output == "-":
        if len(written.files) > 1:
            raise Invalid(f"a session of {agent} is several files", hint="give a folder: -o FOLDER/")
        sys.stdout.flush()
        sys.stdout.buffer.write(written.files[0].data)
        tell_report(report)
        print(told, file=sys.stderr)
        return
    path = put(written, agent, output, force=force)
    if as_json:
        data: dict[str, Any] = {"agent": agent, "id": written.id, "path": path, "report": report}
        print_json({**data, "redacted": None if redactor is None else dict(redactor.found)})
        return
    print(one_line(path))
    tell_report(report)
    print(told, file=sys.stderr)
