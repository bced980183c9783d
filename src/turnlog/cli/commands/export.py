"""`turnlog export`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turnlog.cli.draw.foreignproblems import tell_report
from turnlog.cli.frame.command import KEY_OPTION, SESSION_ARGUMENT, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import REPORT
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.exitcode import UsageError
from turnlog.cli.frame.notes import tell
from turnlog.cli.pick.session import session_to_read
from turnlog.errors import Invalid, NotFound
from turnlog.formats import is_known
from turnlog.formats import names as agents
from turnlog.view.visible import one_line, safe

if TYPE_CHECKING:
    from turnlog.reader.export.document import Document
    from turnlog.reader.export.otel.collector import Endpoint
    from turnlog.reader.opening.opener import OpenedSession
    from turnlog.view.secret.redactor import Redactor

_TEXTS = ("markdown", "html", "json", "jsonl", "otel")
_SHORT = {"md": "markdown", "htm": "html"}
_SUFFIXES = ("md", "markdown", "html", "htm", "json", "jsonl")
GROUP = "Share", 1
CHANGES = shape.OTHERS
FIELDS = {
    "path": shape.text("where it was written; null if it was sent", null=True),
    "[agent]": shape.text("for which agent"),
    "[id]": shape.text("its id there"),
    "[report]": REPORT,
    "[form]": shape.text("the form of the document"),
    "[size_bytes]": shape.number("of the document"),
    "[endpoint]": shape.text("where the spans were sent"),
    "[spans]": shape.number("how many"),
    "[traces]": shape.number("the number of traces, one for each turn"),
    "redacted": shape.one(
        "how many secrets of which kind were taken out; null where nothing was looked for", null=True
    ),
}


@declare(
    SESSION_ARGUMENT,
    Option(
        "--to FORM",
        "markdown (md), html, json, jsonl, otel, or an agent. [default: what -o ends with]",
        name="form",
        kind="form",
    ),
    Option("--output -o PATH", "A file, a folder in the agent's layout, or - for stdout.", kind="file"),
    Option("--force", "Overwrite an existing file."),
    Option("--redact/--no-redact", "Redact secrets. [default: yes, but not for an agent]"),
    Option("--redact-also KINDS", "Also redact paths, names, emails, or all.", name="also"),
    Option(
        "--format-version N", "A newer version of the agent's format. [default: its first]", name="version", number=int
    ),
    Option("--include-ignored", "Include contents of ignored files, if files are written at all."),
    Option("--endpoint URL", "With otel: a collector. [default: $OTEL_EXPORTER_OTLP_ENDPOINT, or a file]"),
    Option("--capture-message-content", "With otel: include prompts, answers, arguments and results.", name="content"),
    KEY_OPTION,
    exclusive=(("--endpoint", "--output"),),
)
def command(
    session: str | None,
    form: str | None,
    output: str | None,
    force: bool,
    redact: bool | None,
    also: str | None,
    version: int | None,
    include_ignored: bool,
    endpoint: str | None,
    content: bool,
    key: str | None,
    as_json: bool,
) -> None:
    """Write a session as a document, or for another agent.

    Markdown and HTML contain the conversation; the HTML is one self-contained file. JSON and JSON lines contain every
    entry, branches included. In these four, API keys, tokens, authorization headers, private keys and passwords are
    redacted and counted; --no-redact leaves them in. For an agent nothing is redacted without --redact. --redact-also
    also redacts who you are: home folders (paths), the names of their users (names), e-mail addresses (emails). Check
    what you publish: not every secret is recognised.

    A file for an agent is read back before it is put in place, and the report lists what was carried over, changed and
    lost. Every release of the agent opens it, unless the session came from a newer one; --format-version allows a newer
    format, and the report then names the release that opens it. Nothing is overwritten without --force. A copy in the
    agent's own folder carries no spending: it counts where it was spent. Only Owlen gets the contents of files; those
    of ignored files only with --include-ignored. `turnlog resume --in AGENT` puts the session where that agent looks
    for it.

    otel writes OpenTelemetry spans, by its conventions for generative AI: a trace for each turn, with every request to
    a model, every tool that ran, and subagents. They are sent to the collector that --endpoint or
    OTEL_EXPORTER_OTLP_ENDPOINT names (OTLP over HTTP, as JSON), or written to a file that a collector reads. Prompts,
    answers, arguments and results are left out unless --capture-message-content is given; secrets are redacted as
    above. A session that is sent again has the same ids.

    \b
    turnlog export k3f9 --to html              a file in this folder
    turnlog export k3f9 -o talk.html           a file of that name
    turnlog export k3f9 --to markdown -o -     to stdout
    turnlog export k3f9 --to html --redact-also all
    turnlog export k3f9 --to otel --endpoint http://localhost:4318
    turnlog export k3f9 --to rho
    turnlog export k3f9 --to sofos -o .sofos/sessions/
    """
    if output == "-" and as_json:
        raise UsageError("either --json or -o -")
    form = _form(form, output)
    if form not in _TEXTS and not is_known(form):
        raise NotFound(f"no form {form!r:.80}", hint=f"one of {', '.join(_TEXTS)}, or an agent: {', '.join(agents())}")
    if form != "otel" and (endpoint is not None or content):
        raise UsageError(f"{'--capture-message-content' if content else '--endpoint'} is for otel, not for {form}")
    kinds = _kinds(also, redact)
    target = _endpoint(endpoint) if form == "otel" and output is None else None
    with session_to_read(session, key=key, family=form == "otel") as opened:
        if form in _TEXTS:
            if version is not None:
                raise UsageError(f"--format-version is for agents, and {form} is none")
            written = _written(opened, form, kinds, is_redacted=redact is not False, has_content=content)
            if target is not None:
                _post(target, written, as_json=as_json)
            else:
                _put(opened.session.handle, form, written, output, force=force, as_json=as_json)
        else:
            from turnlog.view.secret.redactor import Redactor

            redactor = Redactor(kinds) if redact or kinds else None
            _send(opened, form, output, version, include_ignored, redactor, force=force, as_json=as_json)


def _form(form: str | None, output: str | None) -> str:
    """Return the form of what is written: as it was said, or as the file is called."""
    if form is None:
        suffix = Path(output or "").suffix.removeprefix(".").lower()
        if suffix not in _SUFFIXES:
            raise UsageError("missing option '--to'", hint=f"--to html, or one of {', '.join(_TEXTS)}, or an agent")
        form = suffix
    return _SHORT.get(form, form)


def _kinds(also: str | None, redact: bool | None) -> tuple[str, ...]:
    """Return what is to be taken out besides secrets."""
    from turnlog.view.secret.personal import KINDS

    kinds = KINDS if also == "all" else tuple(dict.fromkeys(also.split(","))) if also is not None else ()
    wrong = next((kind for kind in kinds if kind not in KINDS), None)
    if wrong is not None:
        raise Invalid(f"--redact-also {wrong!r:.40}", hint=f"one or several of {','.join(KINDS)}; or all")
    if kinds and redact is False:
        raise UsageError("either --no-redact or --redact-also")
    return kinds


def _endpoint(url: str | None) -> Endpoint | None:
    from turnlog.machine.environment import environment
    from turnlog.reader.export.otel.collector import endpoint_of

    return endpoint_of(environment(), url)


def _written(
    opened: OpenedSession, form: str, also: tuple[str, ...], *, is_redacted: bool, has_content: bool
) -> Document:
    from turnlog.cli.frame.progress import progress_line
    from turnlog.reader.export.document import write

    with progress_line():
        return write(opened, form, is_redacted=is_redacted, also=also, has_content=has_content)


def _post(endpoint: Endpoint, written: Document, *, as_json: bool) -> None:
    from turnlog.cli.frame.progress import progress_line
    from turnlog.reader.export.document import notice
    from turnlog.reader.export.otel.collector import send
    from turnlog.reader.export.otel.telemetry import counts
    from turnlog.view.number import count

    lines = written.data.splitlines()
    with progress_line():
        send(endpoint, lines, tell=tell)
    spans, traces = counts(lines)
    if as_json:
        document = {"form": "otel", "path": None, "endpoint": endpoint.url, "spans": spans, "traces": traces}
        print_json({**document, "redacted": written.redacted})
        return
    print(one_line(f"{count(spans, 'span')} in {count(traces, 'trace')} sent to {endpoint.url}"))
    tell(notice(written.redacted))


def _put(handle: str, form: str, written: Document, output: str | None, *, force: bool, as_json: bool) -> None:
    from turnlog.interop.place import put_file
    from turnlog.machine.folder import absolute
    from turnlog.reader.export.document import ENDINGS, notice

    note = notice(written.redacted)
    if output == "-":
        _write_stdout(written.data, is_json=ENDINGS[form].startswith("json"))
        tell(note)
        return
    name = f"{_file_name(handle)}.{ENDINGS[form]}"
    target = Path(absolute(output if output is not None else name))
    if output is not None and (output.endswith("/") or os.path.isdir(target)):  # noqa: PTH112 - Path's raises
        target = target / name
    path = str(target)
    put_file(path, written.data, mode=0o600, force=force)
    if as_json:
        print_json({"form": form, "path": path, "size_bytes": len(written.data), "redacted": written.redacted})
        return
    print(one_line(path))
    tell(note)


def _write_stdout(data: bytes, *, is_json: bool) -> None:
    """Write a document to stdout: to the byte, or where a terminal shows it, with what could drive that escaped."""
    if sys.stdout.isatty():
        from turnlog.cli.frame.document.escaping import safe_json

        text = safe_json(data).decode() if is_json else safe(data.decode("utf-8", "backslashreplace"))
        data = text.encode()
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.flush()


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
    from turnlog.exchange.exporting.output import put
    from turnlog.exchange.exporting.resumable import report_of
    from turnlog.exchange.exporting.transcript import transcript_of
    from turnlog.exchange.exporting.writing import notes_on, written_for
    from turnlog.formats import format_of
    from turnlog.machine.formatplaces import lies_in_home
    from turnlog.reader.export.document import without_secrets

    transcript = transcript_of(opened.session, include_ignored=include_ignored)
    if redactor is not None:
        transcript = without_secrets(transcript, redactor)
    is_free = output is not None and lies_in_home(format_of(agent), output)
    written, carried = written_for(transcript, agent, version, is_free=is_free)
    report = report_of(written.lost, carried, notes_on(written))
    note = "not redacted; --redact does"
    if redactor is not None:
        note = f"redacted: {redactor.summary or 'nothing was found'}"
    if output == "-":
        if len(written.files) > 1:
            raise Invalid(f"a session of {agent} is several files", hint="give a folder: -o FOLDER/")
        file = written.files[0]
        _write_stdout(file.data, is_json=file.path.endswith((".json", ".jsonl")))
        tell_report(report)
        tell(note)
        return
    path = put(written, agent, output, force=force)
    if as_json:
        data: dict[str, Any] = {"agent": agent, "id": written.id, "path": path, "report": report}
        print_json({**data, "redacted": None if redactor is None else dict(redactor.counts)})
        return
    print(one_line(path))
    tell_report(report)
    tell(note)
