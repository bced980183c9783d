"""rho: a file of lines for each session, grouped by workspace; since version 4 a tree, in a folder of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from turnlog.formats import Format, Problem, Reading, Resuming, SessionHeader, Source, Step, Writing
from turnlog.formats._shared.json import lines
from turnlog.formats._shared.key import UUIDS
from turnlog.formats._shared.rust import compact
from turnlog.formats._shared.value import fields, in_order
from turnlog.formats.seeds.rho.layout import find, homes, place
from turnlog.formats.seeds.rho.message import Json
from turnlog.formats.seeds.rho.names import id_in
from turnlog.formats.seeds.rho.reading import NEWEST, RhoReader
from turnlog.formats.seeds.rho.record import HEADER, seconds
from turnlog.formats.seeds.rho.sidecar import SESSION, beside, title_in_index
from turnlog.formats.seeds.rho.writing import write


def read(source: Source) -> Reading:
    """One session: its header at once, everything else as it is asked for."""
    problems: list[Problem] = []
    path = source.path
    folder, name = os.path.split(os.path.abspath(path))
    is_folder = name == SESSION
    unit = os.path.basename(folder) if is_folder else name.removesuffix(".jsonl")
    reader = RhoReader(id_in(unit) or "", problems)
    rest = lines(path)
    first: list[Step] = []
    for line in rest:
        first += reader.take(line)
        if reader.head is not None or first:
            break
    if reader.head is None:
        reader.look_for_head(path)
    head: Json = reader.head or {}
    own = head.get("id") if isinstance(head.get("id"), str) else None
    session = id_in(unit) or own or unit
    reader.session = session
    if reader.head is None:
        problems.append(Problem("it has no header"))
    elif own is not None and own != session:
        problems.append(Problem(f"its header says that it is {own!r:.60}, its name {session!r:.60}", offset=0))
    version = head.get("version", 1)
    if type(version) is not int or not 1 <= version <= NEWEST:
        problems.append(Problem(f"version {version!r:.20} is not known: read as far as it goes", offset=0))
    workspace = os.path.dirname(folder) if is_folder else folder
    title = title_in_index(os.path.dirname(workspace), os.path.basename(workspace), session, problems)
    header = SessionHeader(
        id=session,
        identity=unit if id_in(unit) == session else f"{unit}:{session}",
        workspace=head["cwd"] if isinstance(head.get("cwd"), str) and head["cwd"] else None,
        title=title,
        created=seconds(head.get("timestamp")),
        origin=_about(reader, session, unit, title, is_folder=is_folder),
    )
    facts: dict[str, Any] = {}
    reading = Reading(header=header, steps=iter(()), problems=problems, facts=facts)

    def steps() -> Iterator[Step]:
        yield from first
        for line in rest:
            yield from reader.take(line)
        reader.unknown.report(problems)
        yield from beside(path, problems)
        facts.update(_facts(reader))

    reading.steps = steps()
    return reading


def _about(reader: RhoReader, session: str, unit: str, title: str | None, *, is_folder: bool) -> Json:
    """What the writer has to know of the session as a whole."""
    about: Json = {}
    if reader.head is not None:
        header = {name: value for name, value in reader.head.items() if name not in ("type", "cwd")}
        if reader.head.get("cwd") == "":
            header["cwd"] = ""
        if header.get("id") == session:
            del header["id"]
        about["header"] = header
        if reader.head_line != compact(in_order(reader.head, HEADER)):
            about["line"] = reader.head_line.decode()
    if id_in(unit) is not None:
        about["unit"] = unit
    return {**about, **({"folder": True} if is_folder else {}), **({"title": title} if title else {})}


def _facts(reader: RhoReader) -> dict[str, Any]:
    """What holds for the session as it stands."""
    facts: dict[str, Any] = {}
    envelope = reader.leaf.state.envelope
    provider = fields(envelope.get("provider"))
    if isinstance(provider.get("model"), str):
        facts["model"] = provider["model"]
        facts["rho.provider"] = provider
    if envelope.get("metadata"):
        facts["rho.metadata"] = envelope["metadata"]
    for name in ("agent_id", "agent_fingerprint"):
        if reader.head is not None and reader.head.get(name) is not None:
            facts[f"rho.{name}"] = reader.head[name]
    return facts


FORMAT = Format(
    "rho, versions 1 to 4: files, folders, trees and checkpoints",
    homes,
    find,
    read,
    write=Writing(render=write, place=place, versions={1: "every rho", 4: "rho of 2026-07-21 or newer"}),
    resume=Resuming(command=lambda id, path, workspace: ["rho", "--resume", id], ids=UUIDS),
)
