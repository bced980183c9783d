"""Any agent's session at a glance, read by its format: the heading and the first prompts."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING

from turnlog.catalog.glance.ends import SessionGlance, stem_of
from turnlog.catalog.glance.survey import FileSurvey, FoundFile, row_of_glance
from turnlog.catalog.index.columns import ms_of
from turnlog.errors import NotFound, Unsupported
from turnlog.formats import Jump, format_of
from turnlog.log.entry import Message
from turnlog.log.prompt.promptmessage import preview

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from turnlog.catalog.index.rows import GlanceRow
    from turnlog.formats import Format, Source

_STEPS = 40


def glance(form: Format, source: Source) -> tuple[FoundFile, SessionGlance] | None:
    """The file and what its beginning shows; None if it cannot be read."""
    try:
        status = os.stat(source.path)
    except OSError:
        return None
    try:
        reading = form.read(source)
        steps = [step.entry for step in islice(reading.steps, _STEPS) if not isinstance(step, Jump)]
    except OSError:
        return None
    except Exception:  # as in `row_at`
        file = FoundFile(status.st_mtime_ns, source.agent, source.path, status.st_size)
        return file, SessionGlance(stem_of(source.path))
    header = reading.header
    prompt = preview(entry for entry in steps if isinstance(entry, Message))
    session = SessionGlance(
        native=header.id,
        workspace=header.workspace,
        title=header.title,
        preview=prompt,
        created_ms=ms_of(header.created),
        fork=header.fork.session if header.fork is not None else None,
        parent=header.spawned.session if header.spawned is not None else None,
        is_hidden=header.hidden,
    )
    return FoundFile(status.st_mtime_ns, source.agent, source.path, status.st_size), session


def rows(survey: FileSurvey, is_over_time: Callable[[], bool]) -> Iterator[GlanceRow]:
    """Sessions of agents without a quick glance, until `is_over_time`."""
    for agent, root in sorted(survey.others):
        try:
            form = format_of(agent)
        except (NotFound, Unsupported):  # its format is in another package, which is missing or broken
            continue
        for source in form.find(root):
            if is_over_time():
                return
            session = glance(form, source)
            if session is not None:
                yield row_of_glance(*session, key=source.key)
