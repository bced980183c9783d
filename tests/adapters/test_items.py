"""Whatever JSON an item is, it comes back from what is kept of it and the blocks, to the order of its keys."""

import json
import sys
from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from turnlog import File, Image, Message, Text, Thinking, ToolCall, ToolResult
from turnlog.log.item import Mismatch, expand, squeeze, storable

_TEXTS = st.one_of(
    st.sampled_from(
        ["hello", "a longer text that is worth a pointer", "", "user", "~", '{"a": 1}', '{"a":1}', "ü" * 30]
    ),
    st.text(max_size=12),
    st.text(alphabet=st.characters(codec=None, categories=["Cs", "Lu"]), max_size=3),
)
_ATOMS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), _TEXTS)
_KEYS = st.sampled_from(["~", "~~", "a", "b.c", "d|e", "content", "role", ""]) | st.text(max_size=4)
_JSON = st.recursive(
    _ATOMS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4), max_leaves=12
)
_PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), _TEXTS.filter(str.isprintable)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def _blocks_and_item(draw):
    """Blocks, and an item in which what they say occurs as well."""
    texts = draw(st.lists(_TEXTS.filter(lambda text: text.isprintable()), max_size=3))
    given_input = draw(_PLAIN)
    data = draw(st.binary(min_size=1, max_size=40))
    blocks = [Text(text) for text in texts]
    blocks.append(ToolCall(id="c1", name="bash", input=given_input))
    blocks.append(ToolResult(call="c1", content=[Text("inside of a result, and long"), Text("short")]))
    blocks.append(Thinking(text="so", data={"item": {"encrypted_content": "e" * 40}}))
    blocks.append(Image(media_type="image/png", data=data))
    blocks.append(File(data=data))
    said = [*texts, given_input, "inside of a result, and long", "e" * 40]
    said += [json.dumps(given_input, separators=spaced) for spaced in (None, (",", ":"))]
    said += [json.dumps(given_input, ensure_ascii=False)]
    blocks.append(ToolResult(call="c2", content=json.dumps({"said": given_input}, ensure_ascii=False)))
    said += [{"said": given_input}, urlsafe_b64encode(data).decode()]
    fields = draw(st.dictionaries(_KEYS, st.one_of(_JSON, st.sampled_from(said)), max_size=6))
    return blocks, fields


PICTURE = Image(media_type="image/png", data=b"p1")


def _exactly(value) -> str:
    return json.dumps(value)


@given(_blocks_and_item())
def test_an_item_comes_back_exactly(case):
    blocks, item = case
    kept = squeeze(item, blocks)
    assert _exactly(expand(kept, blocks)) == _exactly(item)


@given(_JSON)
def test_any_json_comes_back_without_blocks(item):
    assert _exactly(expand(squeeze(item, []), [])) == _exactly(item)


@given(_blocks_and_item())
def test_it_comes_back_from_a_log(case):
    blocks, item = case
    with turnlog.open("memory:") as home, home.create() as session:
        session.append(Message(role="assistant", blocks=blocks, meta={"kept": squeeze(item, blocks)}))
        [found] = session.messages()
        assert _exactly(expand(found.meta["kept"], found.blocks, session.blob)) == _exactly(item)


def test_nothing_is_kept_twice():
    call = ToolCall(id="c1", name="bash", input={"command": "x" * 500})
    image = Image(media_type="image/png", data=b"p" * 300)
    text = "said " * 100
    url = "data:image/png;base64," + "cHBw" * 100
    item = {"text": text, "arguments": json.dumps(call.input), "input": call.input, "url": url, "~": [text]}
    kept = squeeze(item, [Text(text), call, image])
    assert kept == {
        "~~": {
            "text": {"~": "0.text"},
            "arguments": {"~": "1.input|s"},
            "input": {"~": "1.input"},
            "url": {"~": "2.data|u"},
            "~": [{"~": "0.text"}],
        }
    }


def test_what_a_text_says_in_json_and_bytes_for_urls_are_not_kept_twice():
    said = {"status": "success", "report": "x" * 500, "n": [1.0, None, "ü"]}
    spelt = json.dumps(said, ensure_ascii=False)
    call, signature = ToolCall(id="c", name="n", meta={"gemini": {"signature": "s" * 40}}), "s" * 40
    image = Image(media_type="image/png", data=b"\xff\xfe" * 30)
    item = {"response": said, "signature": signature}
    blocks = [ToolResult(call="c", content=spelt), call, image]
    kept = squeeze(item, blocks)
    assert kept["response"] == {"~": "0.content|j"}
    assert kept["signature"] == {"~": "1.meta.gemini.signature"}
    assert _exactly(expand(kept, blocks)) == _exactly(item)
    with pytest.raises(Mismatch):
        expand(kept, [ToolResult(call="c", content="[redacted"), call, image])
    data = urlsafe_b64encode(image.data).decode()
    assert squeeze({"data": data}, blocks) == {"data": {"~": "2.data|w"}}
    assert expand({"data": {"~": "2.data|w"}}, blocks) == {"data": data}


def test_a_word_that_is_also_something_else_is_no_pointer():
    item = {"role": "user", "content": "user"}
    assert squeeze(item, [Text("user")]) == item
    assert squeeze({"role": "user", "content": "hi"}, [Text("hi")]) == {"role": "user", "content": {"~": "0.text"}}


def test_whole_numbers_and_others_are_told_apart():
    blocks = [ToolCall(id="c", name="n", input={"a": 1, "b": True})]
    for other in ({"a": 1.0, "b": True}, {"a": 1, "b": 1}, {"b": True, "a": 1}):
        assert squeeze({"input": other}, blocks) == {"input": other}


def test_an_edit_is_seen_or_refused_never_passed_over():
    kept = squeeze({"role": "user", "content": "my password"}, [Text("my password")])
    assert expand(kept, [Text("[redacted]")], edited=True) == {"role": "user", "content": "[redacted]"}
    with pytest.raises(Mismatch):
        expand(kept, [], edited=True)
    with pytest.raises(Mismatch):
        expand(kept, [Text("[redacted]"), Text("more")], edited=True)
    ambiguous = squeeze({"role": "user", "content": "user"}, [Text("user")])
    with pytest.raises(Mismatch):
        expand(ambiguous, [Text("other")], edited=True)


def test_what_a_log_cannot_hold_is_kept_as_text():
    assert expand(squeeze({"n": 2**70}, []), []) == {"n": 2**70}
    for item in ({"s": "\ud800"}, {"f": float("inf")}):
        kept = squeeze(item, [])
        assert list(kept) == ["~"]
        assert expand(kept, []) == item


@pytest.mark.parametrize("depth", range(185, 215))
def test_an_item_of_any_depth_fits_into_a_log(depth):
    item = {"role": "user", "deep": json.loads("[" * depth + "]" * depth)}
    blocks = storable([ToolCall(id="c1", name="bash", input=item["deep"])])
    with turnlog.open("memory:") as home:
        session = home.create()
        session.append(Message(role="assistant", blocks=blocks, meta={"framework": squeeze(item, blocks)}))
        message = session.messages()[0]
        assert expand(message.meta["framework"], message.blocks) == item


def test_what_could_not_be_read_again_is_refused():
    for depth in (501, 2000, 100_000):
        item = []
        for _ in range(depth):
            item = [item]
        with pytest.raises(ValueError, match="500 levels deep"):
            squeeze({"a": '"[', "deep": item}, [])
    flat = {"a": ["[" * 900, '"' + "{" * 900, [{}] * 900], "n": float("inf")}
    assert expand(squeeze(flat, []), []) == flat
    with pytest.raises(ValueError, match="ircular"):
        circle = []
        circle.append(circle)
        squeeze(circle, [])


def test_a_call_whose_input_is_no_json_is_refused():
    call = ToolCall(id="c1", name="bash", input={"n": float("inf")})
    assert storable([Text("x"), call]) == [Text("x"), ToolCall(id="c1", name="bash", input='{"n": Infinity}')]
    with pytest.raises(TypeError):
        storable([ToolCall(id="c1", name="bash", input={"n": object()})])


@pytest.mark.parametrize(
    "kept",
    [{"~": "0.text|z"}, {"~": "0.text|"}, {"~": "0.data|b"}, {"~": "!["}, {"~~": 5}, {"~": "0.text|s|c"}, {"~": []}],
)
def test_what_a_later_version_kept_is_a_mismatch(kept):
    try:
        assert expand({"role": kept}, [Text("a")]) == {"role": "a"}
    except Mismatch:
        pass
    else:
        assert kept == {"~": "0.text|"}


def test_an_edited_picture_is_seen_or_refused():
    kept = squeeze(
        {"text": "look at this", "image": "data:image/png;base64,cDE="}, said := [Text("look at this"), PICTURE]
    )
    assert expand(kept, [said[0], Image(media_type="image/png", data=b"p2")], edited=True)["image"].endswith("cDI=")
    for edited in ([said[0], Image(url="https://a.example/p.png")], [*said, Image(url="https://a.example/p.png")]):
        with pytest.raises(Mismatch):
            expand(kept, edited, edited=True)


_CALLS = [ToolCall(id=f"c{n}", name="bash", input={"command": "ls", "n": n}) for n in range(200)]


@pytest.mark.parametrize(
    ("item", "blocks"),
    [
        ([json.dumps(call.input) for call in _CALLS], _CALLS),
        ([call.input for call in _CALLS], _CALLS),
        ([{"text": "ok"} for _ in _CALLS], [Text("ok") for _ in _CALLS]),
    ],
    ids=["inputs as text", "inputs", "short texts"],
)
def test_many_blocks_take_no_more_steps_each_than_a_few(item, blocks):
    """Counted in calls of functions: each input is written as text once, and each text of the item counted once."""

    def steps(count: int) -> int:
        calls = 0

        def note(*_):
            nonlocal calls
            calls += 1

        sys.setprofile(note)
        try:
            kept = squeeze(item[:count], blocks[:count])
        finally:
            sys.setprofile(None)
        assert expand(kept, blocks) == item[:count]
        return calls

    assert steps(200) < 12 * steps(20)
