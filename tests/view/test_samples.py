"""Every session that other agents wrote, drawn in every way: nothing raises, all of it fits, nothing unseen is left."""

import re
from pathlib import Path

import pytest

from tests import public
from turnlog.formats import Record, Source, find, format_of, names
from turnlog.log.entry import AnyEntry
from turnlog.view.branch import stretches
from turnlog.view.html import page
from turnlog.view.markdown import document
from turnlog.view.rowmaker import Rows
from turnlog.view.secret.redactor import Redactor
from turnlog.view.terminal.line import lines_of
from turnlog.view.terminal.typeset import LineStyle
from turnlog.view.visible import width

OWN = Path(__file__).resolve().parents[1] / "formats"
PUBLIC = [public.AGENTS] if public.AGENTS.is_dir() else []
COLOUR = re.compile(r"\x1b\[[0-9;]{1,12}m")
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]")


def sources(root: Path) -> list[Source]:
    """Every session below a folder, each once."""
    found: dict[Source, None] = {}
    for agent in names():
        for folder in (root / agent, *(root / agent).rglob("*")):
            if folder.is_dir():
                found.update(dict.fromkeys(find(str(folder), agents=[agent])))
    return list(found)


def entries_of(source: Source) -> list[AnyEntry]:
    return [step.entry for step in format_of(source.agent).read(source).steps if isinstance(step, Record)]


@pytest.mark.parametrize("place", [OWN / "agents", OWN / "seeds", *PUBLIC], ids=lambda path: path.name)
def test_every_sample_is_drawn(place: Path):
    samples = sources(place)
    assert samples
    for source in samples:
        entries = entries_of(source)
        for room in (60, 80, 120):
            for line in lines_of(Rows().paired(entries), LineStyle(room=room, has_colour=True)):
                plain = COLOUR.sub("", line)
                assert width(plain) <= room or plain.lstrip().startswith("▏"), (source, plain)
                assert not UNSEEN.search(plain)
        for text in (
            "".join(page.parts(Rows().paired(entries))),
            "".join(document.parts(Rows().paired(entries))),
            "\n".join(lines_of(Rows().paired(entries), LineStyle(is_full=True))),
        ):
            assert not UNSEEN.search(text), source
        stretches(entries, 0)


@pytest.mark.parametrize("place", [OWN / "agents", *PUBLIC], ids=lambda path: path.name)
def test_there_are_no_secrets_in_the_samples(place: Path):
    """They were looked through before they were published: whatever is found here is none."""
    samples = sources(place)
    assert samples
    for source in samples:
        redactor = Redactor()
        entries = entries_of(source)
        for entry in entries:
            redactor.learn(entry)
        assert [redactor.entry(entry) for entry in entries] == entries
        assert not redactor.counts, source
