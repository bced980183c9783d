"""The tool of a result, where the outline was kept between the call and the result."""

from turnlog.log.block import ToolCall, ToolResult
from turnlog.log.entry import Message
from turnlog.thread.outline import Outline, outline_of

CALL = Message(role="assistant", blocks=[ToolCall(id="c1", name="grep")], seq=1, parent=0)
RESULT = Message(role="tool", blocks=[ToolResult(call="c1", content="found")], seq=2, parent=1)


def test_a_kept_outline_knows_the_tool_of_a_later_result():
    kept = Outline.decode(outline_of([CALL]).encode())
    assert kept is not None
    kept.take(RESULT)
    assert [item.tool for item in kept] == ["grep", "grep"]


def test_an_outline_that_goes_on_with_another_knows_its_calls():
    fork = Outline()
    fork.extend(outline_of([CALL]), until=1)
    fork.take(RESULT)
    assert fork.item(1).tool == "grep"


def test_what_is_cut_is_forgotten():
    outline = outline_of([CALL])
    outline.cut(0)
    outline.take(RESULT)
    assert outline.item(0).tool == ""
