"""Any agent's session at a glance, by its format: its heading, and the first prompts."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING, Any

from turnlog.catalog.glance.ends import SessionGlance
from turnlog.catalog.glance.survey import FileSurvey, FoundFile, row_of_glance
from turnlog.catalog.index.cards import ms_of
from turnlog.formats import Jump, format_of, preview
from turnlog.log.entry import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from turnlog.formats import Format, Source

_STEPS = 40


def glance(form: Format, source: Source) -> tuple[FoundFile, SessionGlance] | None:
    """The file and what its beginning tells; None if it cannot be read."""
    try:
        status = os.stat(source.path)
        reading = form.read(source)
        steps = [step.entry for step in islice(reading.steps, _STEPS) if not isinstance(step, Jump)]
    except OSError:
        return None
    header = reading.header
    prompt = preview(entry for entry in steps if isinstance(entry, Message))
    session = SessionGlance(
        native=header.id,
        workspace=header.workspace,
        title=header.title,
        preview=prompt,
        created=ms_of(header.created),
        fork=header.fork.session if header.fork is not None else None,
        parent=header.spawned.session if header.spawned is not None else None,
        is_hidden=header.hidden,
    )
    return FoundFile(status.st_mtime_ns, source.agent, source.path, status.st_size), session


def rows(survey: FileSurvey, is_late: Callable[[], bool]) -> Iterator[tuple[Any, ...]]:
    """Sessions of agents of which only their formats can tell, as long as there is time."""
    for agent, root in sorted(survey.others):
        form = format_of(agent)
        for source in form.find(root):
            if is_late():
                return
            session = glance(form, source)
            if session is not None:
                yield row_of_glance(*session, key=source.key)
