"""What a service asks of its own sessions: where words are, and what each of its users spent."""

import asyncio

import pytest

import turnlog
from tests.faces import location
from turnlog import Usage, aio


@pytest.fixture(params=["files", "postgres"])
def place(request, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return location(request, tmp_path / "home")


def test_a_service_bills_its_users_by_label_and_finds_what_they_said(place):
    async def main():
        async with aio.open(place) as home:
            for customer, tokens in (("acme", 100), ("acme", 20), ("bolt", 3)):
                s = await home.create(labels={"customer": customer})
                await s.user(f"a walrus of {customer}")
                await s.assistant("yes", model="some-model", usage=Usage(input_tokens=tokens))
            child = await s.spawn(agent="explorer")
            await child.assistant("found", model="some-model", usage=Usage(input_tokens=4000))
            fork = await s.fork()
            await fork.assistant("also", model="other-model", usage=Usage(input_tokens=50_000))
            nobody = await home.create()
            await nobody.assistant("hm", model="some-model", usage=Usage(input_tokens=7))

            spent = {one.group: one.tokens.input_tokens for one in await home.usage(by="label:customer")}
            assert spent == {"acme": 120, "bolt": 54_003, "unknown": 7, "total": 54_130}
            twice = await home.usage("model:some-model", by="label:customer,model")
            assert {one.names: one.tokens.input_tokens for one in twice[:-1]} == {
                ("acme", "some-model"): 120, ("bolt", "some-model"): 4003, ("unknown", "some-model"): 7,
            }  # fmt: skip
            await home.delete(nobody.id)
            hits = await home.search("walrus", limit=2)
            assert len(hits) == 2
            assert hits.next is not None
            assert [len(await home.search("walrus", limit=2, before=hits.next)), len(await home.search("zebra"))] == [
                1,
                0,
            ]
            with pytest.raises(turnlog.Invalid, match="no usage by 'customer'"):
                await home.usage(by="customer")
        with pytest.raises(turnlog.Invalid, match="closed"):
            await home.usage()

    asyncio.run(main())
