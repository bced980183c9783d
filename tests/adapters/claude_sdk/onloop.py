"""A pytest plugin for tests that count turns of the loop: what waits for no disk does not need a thread."""

from turnlog.adapters import claude_sdk


async def at_once(call, /, *args, **kwargs):
    return call(*args, **kwargs)


claude_sdk._run = at_once  # type: ignore[assignment]
