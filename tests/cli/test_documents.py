"""The documents say what is so."""

import re
from pathlib import Path

import msgspec
import pytest

from turnlog.log.block import BLOCKS, Block
from turnlog.log.codec import Flawed, decode
from turnlog.log.entry import ENTRIES, Entry, Unknown
from turnlog.log.part import Fork, Root, Spawned
from turnlog.log.usage import Usage
from turnlog.store.files.packformat import MAGIC

ROOT = Path(__file__).resolve().parents[2]
FORMAT = (ROOT / "docs/format.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def fields_of(cls: type) -> set[str]:
    return {field.name for field in msgspec.structs.fields(cls)} - {"unknown", "unverified"}


def section(title: str) -> str:
    found = re.search(rf"\n##+ {re.escape(title)}\n(.*?)(?=\n##+ |\Z)", FORMAT, re.DOTALL)
    assert found, f"docs/format.md has no section {title}"
    return found[1]


def test_what_every_line_carries_is_all_there():
    text = section("What every line carries")
    assert [name for name in fields_of(Entry) if f"`{name}`" not in text] == []


@pytest.mark.parametrize("name", ENTRIES)
def test_every_type_of_entry_is_documented_with_every_field(name: str):
    text = section(f"`{name}`")
    own = fields_of(ENTRIES[name]) - fields_of(Entry)
    assert [field for field in own if f"`{field}`" not in text and f"`{field}:" not in text] == []
    assert f'{{"type":"{name}",' in FORMAT, "a sample"


@pytest.mark.parametrize("name", BLOCKS)
def test_every_type_of_block_is_documented_with_every_field(name: str):
    rows = [row for row in section("Blocks").split("\n") if row.startswith("|") and f"`{name}`" in row.split("|")[1]]
    assert len(rows) == 1
    own = fields_of(BLOCKS[name]) - fields_of(Block)
    assert [field for field in own if f"`{field}`" not in rows[0]] == []


@pytest.mark.parametrize(
    ("cls", "title"), [(Usage, "Usage"), (Fork, "`session`"), (Spawned, "`session`"), (Root, "`checkpoint`")]
)
def test_what_is_inside_them_is_documented_as_well(cls: type, title: str):
    assert [field for field in fields_of(cls) if f"`{field}`" not in section(title)] == []


def test_every_sample_is_a_real_line():
    samples = [line for line in FORMAT.split("\n") if line.startswith('{"type":')]
    assert len(samples) > 20
    for line in samples:
        entry = decode(line.encode())
        assert not isinstance(entry, Flawed | Unknown), line


def test_packs_are_as_documented():
    assert MAGIC.decode().replace("\n", "\\n") in section("Payloads and blobs")


def test_every_kind_of_damage_is_documented():
    from tests.cli.test_doctor import KINDS

    rows = "\n".join(row.split("|")[1] for row in section("Damage").split("\n") if row.startswith("|"))
    assert set(re.findall(r"`(\w+)`", rows)) == KINDS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path):
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
        assert (page.parent / target).exists(), target


def test_links_inside_the_format_lead_somewhere():
    titles = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"\n#+ (.+)", FORMAT)}
    for target in re.findall(r"\]\(#([^)]+)\)", FORMAT):
        assert target in titles


def test_every_decision_has_its_three_parts():
    pages = sorted((ROOT / "docs/decisions").glob("*.md"))
    for number, page in enumerate(pages, start=1):
        text = page.read_text()
        assert page.name.startswith(f"{number:04d}-")
        assert text.startswith(f"# {number:04d}: ")
        assert [text.count(f"**{part}.**") for part in ("Context", "Decision", "Consequences")] == [1, 1, 1]


def test_modules_that_the_architecture_names_exist():
    text = (ROOT / "docs/architecture.md").read_text().partition("<!-- map")[0]  # in that, names are from a room
    for path in re.findall(r"`((?:log|store|session|cli)/[\w/]+\.py)`", text):
        assert (ROOT / "src/turnlog" / path).is_file(), path
