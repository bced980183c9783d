"""`turnlog keep`: what an agent deletes is still there."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.scene import Cli
from tests.cli.terminal import Terminal
from turnlog.exchange.keeping.keptfile import KeptFiles

ID = "0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f"
DAY = 86_400


def transcript(number: int) -> str:
    about = {"sessionId": ID, "cwd": "/work", "isSidechain": False, "userType": "external", "version": "2.1.197"}
    lines = []
    for turn in range(number):
        at = f"2026-10-0{turn + 1}T10:00:0"
        said = {"role": "user", "content": f"where is bicycle {turn}?"}
        parent = f"a{turn - 1}" if turn else None
        lines.append(
            {
                **about,
                "type": "user",
                "uuid": f"u{turn}",
                "parentUuid": parent,
                "timestamp": f"{at}0.000Z",
                "message": said,
            }
        )
        usage = {"input_tokens": 1_000_000, "output_tokens": 100}
        answer = {"role": "assistant", "id": f"m{turn}", "type": "message", "model": "claude-haiku-4-5", "usage": usage}
        answer |= {"content": [{"type": "text", "text": "in the cellar"}], "stop_reason": "end_turn"}
        more = {"type": "assistant", "uuid": f"a{turn}", "parentUuid": f"u{turn}", "requestId": f"r{turn}"}
        lines.append({**about, **more, "timestamp": f"{at}5.000Z", "message": answer})
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.fixture
def person(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Somebody with a session of Claude Code; nothing is begun behind the back of this process."""
    monkeypatch.setattr("turnlog.machine.detached._NICE", 0)
    monkeypatch.setattr("turnlog.machine.detached.begin", lambda lock, arguments, **more: 0)
    path = session_file(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(transcript(2))
    return tmp_path / "person"


def session_file(tmp_path: Path) -> Path:
    return tmp_path / "person/.claude/projects/-work" / f"{ID}.jsonl"


def rows(cli: Cli) -> list[str]:
    return [row["name"] for row in cli("ls", "--all", "--json").json["sessions"]]


def test_a_session_that_its_agent_deletes_is_listed_found_shown_counted_and_resumed(
    person: Path, tmp_path: Path, cli: Cli
):
    path = session_file(tmp_path)
    assert cli("keep").code == 0
    assert cli("keep", "--now").code == 0
    path.write_text(transcript(3))  # it goes on, and that is kept as well
    assert cli("keep", "--now").code == 0
    assert rows(cli) == [f"claude-code:{ID}"], "not the copy as well"
    before, whole = cli("usage", "--json").json["total"], path.read_bytes()
    shutil.rmtree(path.parent)
    for index in ("as it is", "made anew"):
        if index == "made anew":
            shutil.rmtree(person / ".cache")
        assert rows(cli) == [f"claude-code:{ID}"], index
        assert cli("usage", "--json").json["total"] == before, index
        assert "bicycle 2" in cli("search", "bicycle 2").out, index
        assert "where is bicycle 2?" in cli("show", ID).out, index
        assert cli("path", ID).out.strip().endswith(f"{ID}.jsonl.zst")
    done = cli("resume", ID)
    assert done.out == f"cd /work && claude --resume {ID}\n"
    assert "it is back, to the byte" in done.err
    assert path.read_bytes() == whole
    assert rows(cli) == [f"claude-code:{ID}"]
    assert cli("usage", "--json").json["total"] == before


def test_what_a_kept_session_said_can_be_taken_over_and_written_for_others(person: Path, tmp_path: Path, cli: Cli):
    cli("keep")
    cli("keep", "--now")
    session_file(tmp_path).unlink()
    done = cli("fork", ID)
    assert (done.code, done.err.startswith(f"imported claude-code:{ID}")) == (0, True)
    assert "bicycle 1" in Path(cli("export", ID, "--to", "markdown").out.strip()).read_text()
    assert not session_file(tmp_path).exists()


def test_what_was_deleted_is_brought_in_from_what_is_kept(person: Path, tmp_path: Path, cli: Cli):
    path = session_file(tmp_path)
    cli("keep", "claude-code")
    cli("keep", "--now")
    [name] = rows(cli)
    path.unlink()
    assert cli("import", "--agent", "claude-code", "-w", str(tmp_path), "--json").json["sessions"] == []
    [done] = cli("import", "--all", "--json").json["sessions"]
    assert (done["source"], done["added"] > 0, done["problems"]) == (str(path), True, [])
    assert [one["added"] for one in cli("import", name, "--json").json["sessions"]] == [0]
    cli("push", "--all", str(tmp_path / "other"))
    assert done["id"] in cli("--home", str(tmp_path / "other"), "ls", "--all", "--json").out


def test_what_was_counted_of_a_session_that_is_gone_and_not_kept_stays_counted(person: Path, tmp_path: Path, cli: Cli):
    before = cli("usage", "--json").json["total"]
    assert before["cost_micros"] > 2_000_000
    session_file(tmp_path).unlink()
    for index in ("as it is", "made anew"):
        if index == "made anew":
            shutil.rmtree(person / ".cache")
        after = cli("usage", "--json").json
        assert (after["total"], after["gone"]) == (before, {"claude-code": 1}), index
        assert rows(cli) == []
        assert cli("show", ID).code == 3
        assert "1 session of claude-code is gone: what it cost is counted" in cli("usage").err
    session_file(tmp_path).write_text(transcript(2))
    assert rows(cli) == [f"claude-code:{ID}"]
    again = cli("usage", "--json").json
    assert (again["total"], again["gone"]) == (before, {})


def test_the_limit_of_an_agent_is_raised_after_it_was_shown(person: Path, cli: Cli):
    settings = person / ".claude/settings.json"
    settings.write_text('{\n    "model": "opus",\n    "cleanupPeriodDays": 7\n}\n')
    asked = cli("keep", "--json").json["settings"]
    assert [row["done"] for row in asked] == [False]
    assert '+    "cleanupPeriodDays": 36500' in asked[0]["diff"]
    done = cli("keep")
    assert "claude-code deletes sessions after 7 days" in done.err
    assert "`turnlog keep --yes` does it" in done.err
    assert '"cleanupPeriodDays": 7' in settings.read_text()
    assert cli("keep", "--yes").code == 0
    assert settings.read_text() == '{\n    "model": "opus",\n    "cleanupPeriodDays": 36500\n}\n'
    assert cli("keep", "--json").json["settings"] == []


def test_settings_that_the_agent_could_not_read_stay_as_they_are(person: Path, cli: Cli):
    settings = person / ".claude/settings.json"
    settings.write_text('{"model": "opus",}')
    done = cli("keep", "--yes")
    assert (done.code, settings.read_text()) == (0, '{"model": "opus",}')
    assert f"warning: {settings}: line 1, column 17: a comma too many" in done.err


def test_what_is_about_to_go_is_told_until_it_is_kept(person: Path, tmp_path: Path, cli: Cli):
    old = session_file(tmp_path)
    told = "1 session of claude-code is deleted within 7 days"
    assert told not in cli().out
    os.utime(old, (time.time() - 24 * DAY,) * 2)
    assert told in cli().out
    assert told in cli("doctor").out
    settings = person / ".claude/settings.json"
    settings.write_text('{"cleanupPeriodDays": 90}')
    assert told not in cli().out
    settings.write_text('{"cleanupPeriodDays": 25}')
    assert told in cli().out
    cli("keep")
    assert told not in cli().out


def test_the_doctor_tells_of_the_agents_that_are_here(person: Path, tmp_path: Path, cli: Cli):
    path = session_file(tmp_path)
    news = {"type": "shiny", "uuid": "n1", "sessionId": ID, "timestamp": "2026-10-05T10:00:00Z"}
    path.write_text(transcript(1) + json.dumps(news) + "\n{torn\n")
    (lost := path.with_name("lost.jsonl")).symlink_to("nowhere")
    done = cli("doctor")
    assert done.code == 0
    assert "claude-code" in done.out
    assert "after 30 days" in done.out
    assert "lost.jsonl: it cannot be read: a link that leads nowhere" in done.out
    [agent] = cli("doctor", "--json").json["agents"]
    assert agent["homes"] == [str(person / ".claude/projects")]
    assert (agent["sessions"], agent["unknown"], agent["damaged"]) == (2, {"shiny": 1}, {str(path): 1})
    assert list(agent["unreadable"]) == [str(lost)]
    assert (agent["days"], agent["settings"]) == (30, str(person / ".claude/settings.json"))


def test_who_stops_is_told_what_the_agent_was_told(person: Path, cli: Cli, folder: Path):
    cli("keep")
    cli("keep", "--now")
    stopped = cli("keep", "--stop").out
    assert "nothing more is kept" in stopped
    assert "runs it again" not in stopped
    assert "goes on" not in stopped
    cli("keep", "--yes")
    told = cli("keep", "--stop").out
    assert "claude-code still deletes nothing: " in told
    assert ".claude/settings.json is not changed" in told


def test_one_of_two_is_stopped(person: Path, cli: Cli, folder: Path):
    cli("keep", "claude-code", "codex")
    cli("keep", "--now")
    assert "nothing more of claude-code is kept" in cli("keep", "--stop", "claude-code").out


def test_who_is_not_kept_is_not_stopped(person: Path, cli: Cli, folder: Path):
    cli("keep", "claude-code")
    cli("keep", "--now")
    done = cli("keep", "--stop", "cluade-code")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error: no agent 'cluade-code'\n")
    done = cli("keep", "--stop", "codex")
    assert (done.code, done.err) == (0, "note: codex was not kept\n")
    assert "nothing more" not in done.out
    done = cli("keep", "--stop", "codex", "claude-code")
    assert done.err == "note: codex was not kept\n"
    assert "nothing more is kept; what is kept stays" in done.out


def test_a_word_that_is_an_option(cli: Cli):
    assert "hint: did you mean `turnlog keep --status`?" in cli("keep", "status").err


def test_an_agent_that_only_a_later_version_knows_does_not_stop_the_others(person: Path, tmp_path: Path, cli: Cli):
    """Both versions may be installed; a name that is no text comes from a disk that failed."""
    cli("keep")
    [path] = person.glob(".local/state/turnlog/keep/*.agents")
    path.write_bytes(path.read_bytes() + b"shiny\n\xff\n")
    assert cli("ls", "--all").code == 0
    assert cli("keep", "--now").code == 0
    session_file(tmp_path).unlink()
    assert rows(cli) == [f"claude-code:{ID}"]
    told = {row["agent"]: row["files"] for row in cli("keep", "--status", "--json").json["agents"]}
    assert told == {"claude-code": 1, "shiny": 0, "\ufffd": 0}


def test_status_and_stop(person: Path, tmp_path: Path, cli: Cli, folder: Path):
    assert cli("keep", "--status").out.startswith("nothing is kept")
    assert cli("keep", "nobody").code == 3
    cli("keep")
    cli("keep", "--now")
    told = cli("keep", "--status", "--json").json
    [row] = told["agents"]
    assert (row["agent"], row["is_kept"], row["files"], row["days"]) == ("claude-code", True, 1, 30)
    assert 0 < row["bytes"] < session_file(tmp_path).stat().st_size / 2
    assert told["folder"] == str(folder / "kept")
    assert "what is kept stays" in cli("keep", "--stop").out
    session_file(tmp_path).write_text(transcript(4))
    cli("keep", "--now")
    assert KeptFiles(str(folder)).size_of("claude-code", str(session_file(tmp_path))) == len(transcript(2))


def test_any_command_keeps_what_has_come_since_and_who_is_killed_leaves_it_to_the_next(
    folder: Path, tmp_path: Path, process: Cli
):
    path = session_file(tmp_path)
    path.parent.mkdir(parents=True)
    for number in range(60):
        path.with_name(f"{number:08x}{ID[8:]}.jsonl").write_text(
            transcript(1 + number % 3).replace(ID, f"{number:08x}{ID[8:]}")
        )
    command = [sys.executable, "-m", "turnlog", "keep", "--now"]
    process("keep")  # that begins one by itself
    for pause in (0.12, 0.2):
        with subprocess.Popen(command) as one, subprocess.Popen(command) as other:
            time.sleep(pause)
            one.send_signal(signal.SIGKILL)
            assert other.wait(20) == 0
    kept = KeptFiles(str(folder))
    deadline = time.monotonic() + 20
    while len(list(kept.every("claude-code"))) < 60 and time.monotonic() < deadline:
        process("keep", "--now")
    for file in path.parent.iterdir():
        assert b"".join(kept.data("claude-code", str(file))) == file.read_bytes()
    path.with_name(f"{59:08x}{ID[8:]}.jsonl").write_text(transcript(4))
    told = next((tmp_path / "person/.local/state/turnlog/keep").glob("*.told"))
    os.utime(told, (time.time() - DAY, time.time() - DAY))
    process("formats")
    while kept.size_of("claude-code", str(path.with_name(f"{59:08x}{ID[8:]}.jsonl"))) < len(transcript(4)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_damaged_copy_costs_only_its_own_session(person: Path, cli: Cli, folder: Path, tmp_path: Path):
    path = session_file(tmp_path)
    other = path.with_name(f"b{ID[1:]}.jsonl")
    other.write_text(transcript(1).replace(ID, f"b{ID[1:]}"))
    cli("keep", "claude-code")
    cli("keep", "--now")
    kept = KeptFiles(str(folder))
    place = Path(kept.path_of("claude-code", str(path)))
    damaged = bytearray(place.read_bytes())
    damaged[-6] ^= 1
    place.write_bytes(damaged)
    shutil.rmtree(path.parent)
    shutil.rmtree(person / ".cache")  # the index is made anew
    for _ in range(2):
        listed = {row["name"]: row for row in cli("ls", "--json", "--all").json["sessions"]}
        assert not listed[f"claude-code:b{ID[1:]}"]["problem"]
        assert "is not what was written" in listed[f"claude-code:{ID}"]["problem"]
    done = cli("import", "--all", "--json")
    imported = {row["source"]: row for row in done.json["sessions"]}
    assert str(other) in imported, (done.json, done.err)
    assert imported[str(other)]["added"] > 0
    assert not imported[str(path)]["id"]
    assert "is not what was written" in imported[str(path)]["problems"][-1]["what"]


@pytest.mark.parametrize("key", ["n\n", "\n", "\x04", "y\n"])
def test_asked_on_a_terminal_the_edit_is_shown_first_and_made_on_yes_alone(key: str, person: Path):
    settings = person / ".claude/settings.json"
    before = b'{\n    "model": "opus"\n}\n'
    settings.write_bytes(before)
    with Terminal("-m", "turnlog", "keep", "claude-code", TURNLOG_BACKGROUND="off") as terminal:
        asked = terminal.until("change it? [y/N]")
        assert '+    "cleanupPeriodDays": 36500' in asked
        assert settings.read_bytes() == before
        terminal.type(key)
        assert terminal.end() == 0
    if key == "y\n":
        assert json.loads(settings.read_bytes()) == {"model": "opus", "cleanupPeriodDays": 36500}
        assert "~/.claude/settings.json is changed" in terminal.plain
    else:
        assert settings.read_bytes() == before
        assert "~/.claude/settings.json was not changed" in terminal.plain
    assert "claude-code  yes" in terminal.plain, "it is kept all the same"


def test_ctrl_c_at_a_later_question_tells_only_what_that_one_did_not_change(person: Path):
    (person / ".gemini/tmp").mkdir(parents=True)
    with Terminal("-m", "turnlog", "keep", columns=200, NO_COLOR="1", TURNLOG_BACKGROUND="off") as terminal:
        terminal.until("change it? [y/N]")
        terminal.type("y\n")
        terminal.until("~/.claude/settings.json is changed")
        terminal.until("+  }\n  +}\nchange it? [y/N] ")
        terminal.type("\x03")
        assert terminal.end() == 130
    assert terminal.plain.endswith("~/.gemini/settings.json was not changed\n")
    assert "nothing was changed" not in terminal.plain


def test_a_home_that_another_program_is_told_of_is_none_of_ours(folder: Path, process: Cli, tmp_path: Path):
    session_file(tmp_path).parent.mkdir(parents=True)
    session_file(tmp_path).write_text(transcript(1))
    process("keep", "claude-code")
    process("keep", "--now")
    told = next((tmp_path / "person/.local/state/turnlog/keep").glob("*.told"))
    os.utime(told, (0, 0))
    assert process("run", "-q", "--", "true", "--home", str(tmp_path / "another")).code == 0
    deadline = time.monotonic() + 10
    while told.stat().st_mtime == 0:
        assert time.monotonic() < deadline
        time.sleep(0.02)
