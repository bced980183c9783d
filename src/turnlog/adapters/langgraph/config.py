"""Configs of LangGraph: which thread, namespace and checkpoint they name."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig

from turnlog.adapters._argument import check_id


def configurable(config: RunnableConfig) -> dict[str, Any]:
    """The part of a config that names threads and checkpoints."""
    return config.get("configurable") or {}


def place_of(config: RunnableConfig) -> tuple[str, str]:
    """The thread and the namespace that a config names."""
    names = configurable(config)
    thread_id = names.get("thread_id")  # a number or a UUID will do
    return check_id("" if thread_id is None else str(thread_id), "thread_id"), str(names.get("checkpoint_ns") or "")


def config_of(thread_id: Any, ns: str, name: str) -> RunnableConfig:
    """The config that names a checkpoint."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": name}}
