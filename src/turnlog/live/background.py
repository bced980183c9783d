"""What a hook does after its agent got the answer, in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.live.transcript import import_new, import_until_quiet
from turnlog.thread.space.limit import keep_limit

if TYPE_CHECKING:
    from turnlog.hooks import Meaning
    from turnlog.live.event import LiveEvent


def work(event: LiveEvent, meaning: Meaning | None, *, is_late: bool) -> None:
    """Take the checkpoint that timed out, import what was said, and keep the home within its limit."""
    is_over = meaning == "end"
    if is_late:
        event.take_missed_checkpoint()
    if meaning != "tool":
        (import_until_quiet if is_over else import_new)(event.store, event.session, event.native)
    if is_over or (meaning == "begin" and event.is_full):
        keep_limit(event.store, event.limit_bytes, is_full=event.is_full)
