"""Sessions opened for reading, ours and another agent's; what is appended while they are; which folder is here."""

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import turnlog
from tests.cli.machine import claude_session
from tests.cli.scene import write_session
from turnlog import Message
from turnlog.catalog import Catalog
from turnlog.errors import Invalid, NotFound, Unavailable
from turnlog.formats import Source, format_of
from turnlog.log.context import text_of
from turnlog.reader.agents.blobspace import blob_use
from turnlog.reader.agents.presence import agents_here
from turnlog.reader.naming.candidate import SeveralFit
from turnlog.reader.naming.here import in_folder, levels, newest_at, newest_here, of_here, project
from turnlog.reader.opening.follow import follow
from turnlog.reader.opening.opener import OpenedSession, SessionOpener
from turnlog.reader.part import part_of

FIRST, SECOND = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000002000"


def theirs(workspace: Path, id: str = FIRST, *texts: str) -> Path:
    return claude_session(Path(os.environ["HOME"]), str(workspace), id, *(texts or ("plant roses", "and water them")))


def texts(opened: OpenedSession) -> list[str]:
    entries = part_of(opened.session).entries(opened.session)
    return [text_of(entry.blocks) for entry in entries if isinstance(entry, Message)]


def test_one_of_ours_is_read_while_it_is_written(workspace: Path):
    with turnlog.open(checkpoints=False) as home:
        session = home.create(id="ours-1", workspace=".")
        session.user("hi")
        with SessionOpener().read("ours") as opened:
            assert (opened.name, opened.source, opened.problems) == ("ours-1", None, [])
            session.user("there")
            assert texts(opened) == ["hi"]
            opened.session.refresh()
            assert texts(opened) == ["hi", "there"]


def test_a_home_elsewhere_and_one_in_the_trash(workspace: Path):
    with turnlog.open("../other", checkpoints=False) as home:
        home.create(id="gone-1").user("hi")
        home.delete("gone-1")
    with SessionOpener("../other").read("gone-1") as opened:
        assert texts(opened) == ["hi"]
    with pytest.raises(NotFound), SessionOpener().read("gone-1"):
        pass


def test_a_key_is_for_files(workspace: Path):
    with turnlog.open(checkpoints=False) as home:
        write_session(home, id="ours-1")
    with pytest.raises(Invalid, match="session ours-1 is one of ours"), SessionOpener().read("ours-1", key="1"):
        pass


def test_another_agents_is_read_where_it_lies_and_nothing_is_kept(workspace: Path):
    path = theirs(workspace)
    before, said = path.read_bytes(), []
    told: list[tuple[str, int, int]] = []
    reader = SessionOpener(progress=lambda *step: told.append(step), warn=said.append)
    for word in (f"claude-code:{FIRST}", str(path), None):
        with reader.read(word) as opened:
            assert opened.name == f"claude-code:{FIRST}"
            assert opened.source is not None
            assert opened.source.path == str(path)
            assert texts(opened) == [
                "plant roses",
                "Answer to: plant roses",
                "and water them",
                "Answer to: and water them",
            ]
    assert told == [("reading", 0, 1)] * 3
    assert said == []
    assert path.read_bytes() == before
    assert not list((workspace.parent / "home").glob("sessions/*"))


def test_a_path_needs_no_home(workspace: Path):
    path = theirs(workspace)
    (workspace.parent / "home").write_text("no folder")
    with SessionOpener().read(str(path)) as opened:
        assert len(texts(opened)) == 4


def test_one_of_several_is_chosen_by_its_number_or_id(workspace: Path):
    folder = theirs(workspace, FIRST).parent
    theirs(workspace, SECOND, "another")
    with pytest.raises(SeveralFit) as failed, SessionOpener().read(str(folder)):
        pass
    assert failed.value.is_numbered
    assert [item.id for item in failed.value.candidates] == [FIRST, SECOND]
    for key in ("2", SECOND, SECOND[:-1]):
        with SessionOpener().read(str(folder), key=key) as opened:
            assert opened.native == SECOND
    with (
        pytest.raises(NotFound, match=r"no session at .* answers to --key '3'") as nothing,
        SessionOpener().read(str(folder), key="3"),
    ):
        pass
    assert f"there are {FIRST}, {SECOND}" in str(nothing.value.hint)


def test_a_key_that_fits_nothing_is_not_found_where_there_is_one_session(workspace: Path):
    path = theirs(workspace)
    with pytest.raises(NotFound, match="answers to --key 'zzz'"), SessionOpener().read(str(path), key="zzz"):
        pass


def test_a_key_of_very_many_digits_fits_nothing(workspace: Path):
    folder = theirs(workspace, FIRST).parent
    theirs(workspace, SECOND, "another")
    with pytest.raises(NotFound, match="answers to --key"), SessionOpener().read(str(folder), key="1" * 5000):
        pass


def test_why_none_of_several_files_can_be_read_is_said(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    path = theirs(workspace, FIRST)
    theirs(workspace, SECOND, "another")

    def refused(source: Source) -> None:
        raise PermissionError(13, "Permission denied", source.path)

    form = replace(format_of("claude-code"), read=refused)
    monkeypatch.setattr("turnlog.formats.format_of", lambda name: form)
    with pytest.raises(turnlog.Unavailable, match="Permission denied"), SessionOpener().read(str(path.parent)):
        pass


def test_following_gives_what_is_appended(workspace: Path):
    with turnlog.open(checkpoints=False) as home:
        session = home.create(id="ours-1")
        session.user("before")
        with SessionOpener().read("ours-1") as opened:
            last = opened.session.seq
            session.user("after")
            arrived = list(follow(opened, last, 0))
    assert [entry.seq for entry in arrived if isinstance(entry, Message)] == [session.seq]


def test_following_another_agents_reads_its_file_again(workspace: Path):
    path = theirs(workspace, FIRST, "first")
    with SessionOpener().read(str(path)) as opened:
        last = opened.session.seq
        theirs(workspace, FIRST, "first", "second")
        arrived = [text_of(entry.blocks) for entry in follow(opened, last, 0) if isinstance(entry, Message)]
    assert "second" in arrived


# ── here ──────────────────────────────────────────────────────────────────────────────────────────


def test_in_a_repository_all_of_it_is_here(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    (workspace / "src/deep").mkdir(parents=True)
    (workspace / ".git").mkdir()
    monkeypatch.chdir(workspace / "src/deep")
    assert project() == str(workspace)
    assert list(levels()) == [[str(workspace / "src/deep"), str(workspace / "src"), str(workspace)]]
    with turnlog.open(checkpoints=False) as home:
        top = write_session(home, workspace=str(workspace))
        assert newest_here(home) == newest_at(home, str(workspace)) == top
        assert newest_here(home, agent="nobody") is None
        assert newest_at(home, str(workspace / "src")) is None
        below = write_session(home, workspace=".")
        assert newest_here(home) == below


def test_elsewhere_it_is_the_folder_and_then_those_above(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    (workspace / "src").mkdir()
    monkeypatch.chdir(workspace / "src")
    assert project() == str(workspace / "src")
    assert list(levels())[:2] == [[str(workspace / "src")], [str(workspace)]]
    with turnlog.open(checkpoints=False) as home:
        write_session(home, id="above-1", workspace=str(workspace))
    with Catalog() as catalog:
        rows, folder = of_here(catalog.lines())
        assert ([row.name for row in rows], folder) == (["above-1"], str(workspace))


def test_a_folder_in_a_query_is_quoted():
    assert in_folder("roses", '/a "b" \\c') == 'roses workspace:"/a \\"b\\" \\\\c"'


def test_a_folder_holds_on_every_side_of_an_or():
    assert in_folder("roses OR tulips", "/a") == "roses workspace:/a OR tulips workspace:/a"


def test_a_folder_that_is_one_session_counts_with_all_that_lies_in_it(tmp_path: Path):
    from turnlog.reader.opening.temporary import _size

    (tmp_path / "session" / "parts").mkdir(parents=True)
    (tmp_path / "session" / "a.json").write_bytes(b"x" * 1000)
    (tmp_path / "session" / "parts" / "b.json.zst").write_bytes(b"x" * 500)
    assert _size(str(tmp_path / "session")) == 6000
    assert _size(str(tmp_path / "session" / "a.json")) == 1000
    with pytest.raises(Unavailable):
        _size(str(tmp_path / "gone"))


def test_the_example_of_the_room_runs(workspace: Path):
    """The lines in the docstring of `turnlog.reader`, with another name of a session."""
    import textwrap

    import turnlog.reader

    path = theirs(workspace, FIRST, "hello", "again")
    example = textwrap.dedent(str(turnlog.reader.__doc__).partition("\n\n")[2].partition("\n\n")[0])
    names: dict[str, Any] = {"SessionOpener": SessionOpener, "part_of": part_of}
    exec(example.replace('"codex:0199"', repr(str(path))), names)
    assert names["part"].is_end


def test_an_older_session_is_searched_if_the_newest_is_too_large(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    large = theirs(workspace, FIRST, "hello")
    small = theirs(workspace, SECOND, "another")
    with small.open("a") as file:
        file.write('{"type": "of-tomorrow", "uuid": "u", "sessionId": "%s"}\n' % SECOND)  # noqa: UP031
    with large.open("a") as file:
        file.write("\n" * 10_000)
    os.utime(small, (1_700_000_000, 1_700_000_000))
    monkeypatch.setattr("turnlog.reader.agents.presence._BYTES", 10_000)
    with Catalog(str(workspace.parent / "home"), agents=True, fresh_for=0) as catalog:
        catalog.sync()
        [claude] = [agent for agent in agents_here(catalog) if agent.agent == "claude-code"]
    assert claude.unknown == {"of-tomorrow": 1}


def test_a_pack_that_is_removed_meanwhile_leaves_the_others_counted(tmp_path: Path):
    blobs = tmp_path / "home" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / "a.pack").write_bytes(b"x" * 1000)
    (blobs / "gone.pack").symlink_to(tmp_path / "nowhere")  # it is listed, and there is nothing to ask of
    (blobs / "z.pack").write_bytes(b"x" * 500)
    use = blob_use(str(tmp_path / "home"))
    assert use is not None
    assert use.used_bytes == 1500
