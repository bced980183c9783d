"""`turnlog export --to markdown|html|json|jsonl`: a session for people and programs, without its secrets."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.cli.scene import Cli
from tests.cli.test_import import SEEDS, claude_file
from turnlog import Text, ToolCall, Usage

FORMS = {"markdown": "md", "html": "html", "json": "json", "jsonl": "jsonl"}
KEY = "sk-" + "proj-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4"
PASSWORD = "tr0ub4dor-x9"


@pytest.fixture
def leaky(folder: Path) -> str:
    """A session with secrets in it, one of them where a fold would cut it in two."""
    with turnlog.open(checkpoints=False) as home:
        session = home.create(id="leaky", title="What is in .env?", agent="mine", workspace=".")
        session.user("Show me .env")
        session.assistant(
            [Text("Here:"), ToolCall(id="c1", name="Bash", input={"command": f"curl -H 'X-Api-Key: {KEY}' a.b"})],
            model="claude-sonnet-4-5",
            usage=Usage(input_tokens=1000, output_tokens=100),
        )
        lines = [f"LINE_{n}=1" for n in range(40)]
        lines[20] = f"DB_PASSWORD={PASSWORD} " + "x" * 300 + f" OPENAI_API_KEY={KEY}"
        session.tool_result("c1", "\n".join(lines))
        session.assistant(f"The password is {PASSWORD}. <script>alert(1)</script>")
    return "leaky"


def text_of(done: Any) -> str:
    return Path(done.json["path"]).read_text(encoding="utf-8")


@pytest.mark.parametrize("form", FORMS)
def test_secrets_are_taken_out_and_it_is_said(process: Cli, leaky: str, form: str):
    done = process("export", leaky, "--to", form)
    assert done.code == 0, done.err
    path = Path(done.out.strip())
    assert path == Path.cwd() / f"leaky.{FORMS[form]}"
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text(encoding="utf-8")
    for secret in (KEY, PASSWORD, KEY[:20], PASSWORD[:8]):
        assert secret not in text
    assert "[redacted: API key]" in text.replace("\\", "")
    assert "LINE_39=1" in text.replace("\\", "")
    assert done.err.startswith("Redacted: 2 × API key, 2 × password.")
    if form in ("markdown", "html"):
        assert "Redacted: 2 × API key, 2 × password." in text
    else:
        assert json.loads(text.splitlines()[0] + ("]}" if form == "json" else ""))["redacted"] == {
            "API key": 2,
            "password": 2,
        }


@pytest.mark.parametrize("form", FORMS)
def test_they_stay_where_they_are_wanted_and_that_is_said_too(process: Cli, leaky: str, form: str):
    done = process("export", leaky, "--to", form, "--no-redact", "--json")
    assert done.code == 0
    assert done.err == ""
    assert done.json["redacted"] is None
    assert KEY in text_of(done)
    assert PASSWORD in text_of(done).replace("\\", "")
    shown = process("export", leaky, "--to", form, "--no-redact", "-o", "-")
    assert "Not redacted: " in shown.err
    if form in ("markdown", "html"):
        assert "Not redacted: " in shown.out


def test_an_agents_format_is_not_redacted_unless_asked(process: Cli, leaky: str):
    plain = process("export", leaky, "--to", "pi", "-o", "a.jsonl")
    assert plain.code == 0
    assert "not redacted; --redact does" in plain.err
    assert KEY in Path("a.jsonl").read_text()
    clean = process("export", leaky, "--to", "pi", "-o", "b.jsonl", "--redact")
    assert clean.code == 0, clean.err
    assert "redacted: 2 × API key, 2 × password" in clean.err
    text = Path("b.jsonl").read_text()
    assert KEY not in text
    assert PASSWORD not in text
    assert process("export", leaky, "--to", "pi", "-o", "c.jsonl", "--redact", "--json").json["redacted"] == {
        "API key": 2,
        "password": 2,
    }
    again = process("show", str(Path("b.jsonl").absolute()), "--json").json
    assert again["totals"]["tool_results"] == 1
    assert again["problems"] == []


def test_going_back_to_its_own_agent_takes_no_secret_along(process: Cli, tmp_path: Path):
    path = claude_file(tmp_path / "a", 1, "/home/ada/a")
    path.write_text(path.read_text().replace("user 1", f"my key is {KEY}"))
    done = process("export", str(path), "--to", "claude-code", "-o", "out.jsonl", "--redact")
    assert done.code == 0, done.err
    assert KEY not in Path("out.jsonl").read_text()
    assert "[redacted: API key]" in Path("out.jsonl").read_text()


def test_json_has_every_entry(process: Cli, leaky: str):
    with turnlog.open(checkpoints=False) as home:
        session = home.resume(leaky)
        session.user("a branch")
        session.rewind(turns=1)
    whole = json.loads(text_of(process("export", leaky, "--to", "json", "--json")))
    assert whole["version"] == 1
    assert (whole["session"], whole["title"], whole["agent"]) == (leaky, "What is in .env?", "mine")
    assert whole["usage"]["own"]["input_tokens"] == 1000
    kinds = [entry["type"] for entry in whole["entries"]]
    assert kinds[0] == "session"
    assert {"message", "head"} <= set(kinds)
    assert not {"writer", "fold"} & set(kinds), "which machine it was is nobody's business"
    assert "a branch" in json.dumps(whole)
    head, *lines = text_of(process("export", leaky, "--to", "jsonl", "--json")).splitlines()
    assert json.loads(head) == {name: value for name, value in whole.items() if name != "entries"}
    assert [json.loads(line) for line in lines] == whole["entries"]


def test_html_is_one_page_that_fetches_nothing(process: Cli, leaky: str):
    text = text_of(process("export", leaky, "--to", "html", "--json"))
    assert text.startswith("<!doctype html>")
    assert "default-src 'none'" in text
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<details" in text
    assert "40 lines" in text
    assert text.rstrip().endswith("</html>")


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_a_title_is_there_although_the_first_prompt_held_a_secret(process: Cli, folder: Path, form: str):
    with turnlog.open(checkpoints=False) as home:
        session = home.create(id="told", agent="mine", workspace=".")
        session.user(f"Use the key {KEY} and list my buckets")
        session.user("x" * 80 + f" and then {KEY}")  # where a line is cut, it would lose its shape
    text = text_of(process("export", "told", "--to", form, "--json"))
    first = text.splitlines()[0] if form == "markdown" else text.partition("<title>")[2].partition("</title>")[0]
    assert first.replace("\\", "").endswith("Use the key [redacted: API key] and list my buckets")
    assert KEY[:12] not in text


def test_html_lists_what_was_asked(process: Cli, leaky: str):
    assert "<nav" not in text_of(process("export", leaky, "--to", "html", "--json"))  # one is no list
    with turnlog.open(checkpoints=False) as home, home.resume(leaky) as session:
        asked = session.user("<b>and</b> now?")
    text = text_of(process("export", leaky, "--to", "html", "-o", "again.html", "--json"))
    listed = text.partition("<nav")[2].partition("</nav>")[0]
    assert f'<li><a href="#e{asked.seq}">&lt;b&gt;and&lt;/b&gt; now?</a></li>' in listed
    assert listed.count("<li>") == 2
    assert f'id="e{asked.seq}"' in text


def test_markdown_is_what_was_said(process: Cli, leaky: str):
    text = text_of(process("export", leaky, "--to", "markdown", "--json"))
    assert text.startswith("# What is in .env?\n")
    assert "## user\n" in text
    assert "\nShow me .env" in text
    assert "**Bash** `curl -H 'X-Api-Key: [redacted: API key]' a.b`" in text
    assert "&lt;script\\>" in text


@pytest.mark.parametrize("form", FORMS)
def test_another_agents_session_where_it_lies(process: Cli, folder: Path, form: str):
    sofos = SEEDS / "sofos/v0.2.8/workspace/.sofos/sessions/session_1778061000123.json"
    done = process("export", str(sofos), "--to", form, "-o", "out/", "--json")
    assert done.code == 0, done.err
    assert Path(done.json["path"]).parent == Path.cwd() / "out"
    assert "sofos" in text_of(done)
    assert not folder.exists()


def test_nothing_is_overwritten_without_force(process: Cli, leaky: str):
    Path("leaky.html").write_text("mine")
    done = process("export", leaky, "--to", "html")
    assert done.code == 4
    assert Path("leaky.html").read_text() == "mine"
    assert [path.name for path in Path.cwd().iterdir()] == ["leaky.html"], "nothing half done is left"
    assert process("export", leaky, "--to", "html", "--force").code == 0
    assert Path("leaky.html").read_text().startswith("<!doctype html>")


def test_to_stdout_only_the_document_goes(leaky: str):
    words = [sys.executable, "-m", "turnlog", "export", leaky, "-o", "-", "--to"]
    page = subprocess.run([*words, "html"], capture_output=True, check=True)
    assert page.stdout.startswith(b"<!doctype html>")
    assert page.stdout.endswith(b"</html>\n")
    lines = subprocess.run([*words, "jsonl"], capture_output=True, check=True)
    assert all(json.loads(line) for line in lines.stdout.splitlines())
    assert lines.stderr.startswith(b"Redacted: ")


def test_a_name_that_is_no_file_name(folder: Path, process: Cli):
    with turnlog.open(checkpoints=False) as home:
        home.create(id="../../etc/odd name\x1b").user("hi")
    done = process("export", "latest", "--to", "markdown", "--json")
    assert done.code == 0, done.err
    assert Path(done.json["path"]).parent == Path.cwd()


def test_a_title_with_a_secret_in_it(folder: Path, process: Cli):
    with turnlog.open(checkpoints=False) as home:
        home.create(id="one", title=f"use {KEY}").user("hi")
        home.create(id="two").user(f"first thing said: {KEY}")
    for name in ("one", "two"):
        for form in FORMS:
            assert KEY not in text_of(process("export", name, "--to", form, "--json", "--force"))


def test_the_texts_of_files_are_redacted_with_the_rest(process: Cli):
    key = "sk-ant-api03-" + "k3" * 40
    with turnlog.open() as home, home.create(workspace=".") as session, session.turn():
        session.user("go")
        Path("settings.txt").write_text(f"token = {key}\n")
    plain = process("export", session.handle, "--to", "owlen", "-o", "-")
    clean = process("export", session.handle, "--to", "owlen", "-o", "-", "--redact")
    assert (plain.code, clean.code) == (0, 0)
    assert key in plain.out
    assert key not in clean.out
    assert "settings.txt" in clean.out


@pytest.mark.parametrize("form", FORMS)
def test_who_somebody_is_is_taken_out_where_that_is_asked_for(cli: Cli, form: str):
    with turnlog.open(checkpoints=False) as home:
        session = home.create(id="told", workspace="/home/hanna/webshop", agent="mine")
        session.user("I am hanna, write to hanna@webshop.de about /home/hanna/webshop/app.py")
    plain = cli("export", "told", "--to", form, "-o", "-").out
    assert "hanna@webshop.de" in plain
    done = cli("export", "told", "--to", form, "-o", "-", "--redact-also", "paths,names,emails")
    assert cli("export", "told", "--to", form, "-o", "-", "--redact-also", "all").out == done.out
    assert "hanna" not in done.out
    assert "webshop/app.py" in done.out
    assert "e-mail address" in done.err


@pytest.mark.parametrize(
    ("name", "begins"), [("a.html", "<!doctype html>"), ("a.HTM", "<!doctype html>"), ("a.md", "# "), ("a.jsonl", "{")]
)
def test_the_name_of_the_file_says_its_form(cli: Cli, leaky: str, tmp_path: Path, name: str, begins: str):
    assert cli("export", leaky, "-o", str(tmp_path / name)).code == 0
    assert (tmp_path / name).read_text().lower().startswith(begins)


@pytest.mark.parametrize("words", [[], ["-o", "-"], ["-o", "talk"], ["-o", "talk.pdf"]])
def test_without_a_form_it_is_said_which_there_are(cli: Cli, leaky: str, words: list[str]):
    done = cli("export", leaky, *words)
    assert done.code == 2
    assert "missing option '--to'" in done.err
    assert "html" in done.err


def test_what_else_is_redacted_has_to_be_known(cli: Cli, leaky: str):
    done = cli("export", leaky, "--to", "html", "-o", "-", "--redact-also", "faces")
    assert done.code == 2
    assert "paths,names,emails" in done.err
    assert cli("export", leaky, "--to", "html", "-o", "-", "--redact-also", "paths", "--no-redact").code == 2
