"""What the Claude SDK gives its store, for `test_every`."""

import asyncio
import uuid

from turnlog.adapters.claude_sdk import TurnlogSessionStore as Store

SESSION, OTHER = "p/s1", "p/s2"


def _key(session):
    project, session_id = session.split("/")
    return {"project_key": project, "session_id": session_id}


def _line(role, content, parent, **fields):
    message = {"role": role, "content": content, **fields}
    return {"type": role, "uuid": str(uuid.uuid4()), "parentUuid": parent, "sessionId": "s1", "message": message}


def opened(home, session=SESSION):
    return Store(home)


def ask(store, text, session=SESSION):
    async def work():
        lines = [one for one in await store.load(_key(session)) or [] if one["type"] in ("user", "assistant")]
        asked = _line("user", text, lines[-1]["uuid"] if lines else None)
        said, usage = [{"type": "text", "text": f"answer to {text}"}], {"input_tokens": 10, "output_tokens": 2}
        answer = _line("assistant", said, asked["uuid"], id=f"msg_{uuid.uuid4().hex}", model="m", usage=usage)
        await store.append(_key(session), [asked, answer])

    asyncio.run(work())


def texts(store, session=SESSION):
    lines = asyncio.run(store.load(_key(session))) or []
    summaries = [number for number, one in enumerate(lines) if one.get("isCompactSummary")]
    lines = lines[summaries[-1] :] if summaries else lines  # Claude Code reads on from the last one
    said = [one["message"]["content"] for one in lines if one["type"] in ("user", "assistant")]
    return [one if isinstance(one, str) else one[0]["text"] for one in said]


def keep(store, secret):
    ask(store, "hi")
    asyncio.run(store.append(_key(SESSION), [{"type": "of next year", "held": secret}]))


def kept(store):
    return asyncio.run(store.load(_key(SESSION)))[-1]["held"]


def erase(store):
    asyncio.run(store.delete(_key(SESSION)))
