"""What several tests here say and look at."""

from collections.abc import Iterable
from pathlib import Path

from turnlog import Message, Session, ToolCall, ToolResult
from turnlog.store.files.names import file_name


def texts(messages: Iterable[Message]) -> list[str]:
    """What was said, result or text."""
    return [
        block.content if isinstance(block, ToolResult) else getattr(block, "text", "")
        for message in messages
        for block in message.blocks
    ]


def log_of(folder: Path, session: Session | str) -> Path:
    """The file of a session."""
    return folder / "sessions" / file_name(session if isinstance(session, str) else session.id)


def everything_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def work(session: Session, call: str, result: str, *, is_error: bool = False) -> None:
    """One call of a tool, answered."""
    session.assistant([ToolCall(id=call, name="bash", input={"command": f"run {call}"})])
    session.tool_result(call, result, is_error=is_error)


def assert_paired(messages: Iterable[Message]) -> None:
    """Every call is followed by its result, every result follows its call: what providers insist on."""
    waiting: list[str] = []
    for message in messages:
        for block in message.blocks:
            if isinstance(block, ToolResult):
                assert block.call in waiting, f"a result of {block.call} without its call"
                waiting.remove(block.call)
        calls = [block.id for block in message.blocks if isinstance(block, ToolCall)]
        assert not (calls and waiting), f"{waiting} were not answered"
        assert message.role == "tool" or not waiting, f"{waiting} were not answered"
        waiting += calls
    assert not waiting, f"{waiting} were not answered"
