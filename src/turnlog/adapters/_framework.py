"""Importing a framework, which may not be installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from turnlog.errors import Unsupported


def import_framework(module: str, extra: str) -> Any:
    """Import a module of a framework; `Unsupported` says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise Unsupported(f"{module} is not installed: {error}", hint=f"pip install 'turnlog[{extra}]'") from error
