"""What every version was made to do, in words that all of them know: `python life.py HOME PROJECT`.

It runs with the code of that version, so it imports nothing of the tests, and leaves out what a version cannot do yet.
"""

import sys
from pathlib import Path

import turnlog
from turnlog import Custom, Message, Text, ToolCall, Usage

TICKS = 260
"""So many entries that there is a fold among them."""
LONG = "line of a long output\n" * 5_000
PICTURE = bytes(range(256)) * 8


def live(place: str, project: Path) -> None:
    with turnlog.open(place) as home:
        talk = home.create(id="talk", workspace=str(project), agent="my-agent", title="Fix the flaky test")
        talk.system("be brief")
        (project / "app.py").write_text("print('one')\n")
        (project / "notes").mkdir()
        for number in range(20):
            (project / "notes" / f"{number}.txt").write_text(f"note {number}\n")
        with talk.turn():
            talk.user("The test is flaky, fix it")
            talk.assistant(
                [Text("Looking."), ToolCall(id="c1", name="bash", input={"command": "pytest -x"})],
                model="claude-sonnet-4-5",
                usage=Usage(input_tokens=300, output_tokens=80, cache_read_tokens=900),
                duration_ms=1500,
            )
            talk.tool_result("c1", LONG, is_error=True)
            (project / "app.py").write_text("print('two')\n")
        talk.set("mode", "plan")
        talk.note("the user went for lunch", data={"minutes": 45})
        talk.user("and now?")
        talk.assistant("Done.", model="claude-sonnet-4-5", usage=Usage(input_tokens=10, output_tokens=5))
        if hasattr(talk, "checkpoint"):
            talk.checkpoint("done")
        fork = talk.fork(id="another idea")
        fork.user("another way")
        home.put_blob(PICTURE)
        many = home.create(id="many")
        many.append(Message(role="user", blocks=[Text("nobody sees this")], display=False))
        for number in range(TICKS):
            many.user(f"tick {number}")
        if hasattr(many, "erase"):
            many.erase(many.append(Custom(kind="my-agent.key", data="hunter2")), reason="a key", by="ada")
        many.compact("It ticked.", keep=2)
        many.rewind(to=many.messages()[10].seq)
        gone = home.create(id="gone")
        gone.user("deleted")
        purged = home.create(id="purged")
        purged.user("one")
        kept = purged.fork(id="fork of purged")
        kept.user("two")
        for session in (talk, fork, many, gone, purged, kept):
            session.close()
        home.delete("gone")
        home.purge("purged")


if __name__ == "__main__":
    live(sys.argv[1], Path(sys.argv[2]))
