"""The fields of a new session."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from turnlog.log.part import Spawned


class SessionFields(TypedDict, total=False):
    """The options of a new session; see `Home.create`."""

    workspace: str | os.PathLike[str] | None
    agent: str | None
    title: str | None
    id: str | None
    labels: Mapping[str, str] | None
    resume: Sequence[str]
    hidden: bool


class NewSession(SessionFields, total=False):
    """The fields of a session that may come from elsewhere, or belong to another one."""

    origin: Any
    at: datetime | None
    spawned: Spawned
