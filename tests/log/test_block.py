"""What blocks hold: bytes of pictures and documents, and names of tools."""

import pytest

from turnlog.log.block import File, Image, Text, ToolCall, bytes_of, tool_names

BLOBS = {"b1": b"from the blob"}


@pytest.mark.parametrize("kind", [Image, File])
def test_bytes_are_taken_from_a_block_or_its_blob(kind):
    assert bytes_of(kind(data=b"here"), None) == b"here"
    assert bytes_of(kind(data=b"here", blob="b1"), BLOBS.__getitem__) == b"here"
    assert bytes_of(kind(blob="b1"), BLOBS.__getitem__) == b"from the blob"
    assert bytes_of(kind(blob="b1"), None) is None
    assert bytes_of(kind(url="https://example.com/a"), BLOBS.__getitem__) is None


def test_tools_are_named_by_their_calls():
    blocks = [Text("a"), ToolCall(id="c1", name="bash"), ToolCall(id="c2", name="read", by="provider")]
    assert tool_names(blocks) == {"c1": "bash", "c2": "read"}
