"""The text that a person typed, without what agents put around it, and whether it describes the session. Pure."""

from __future__ import annotations

import re

from turnlog.log.text import one_line

PREVIEW = 120
_HEAD = 200
# Not compiled: importing Turnlog stays fast, and patterns are compiled when a prompt is examined.
_INJECTED = (
    r"(?s)\A\s*(?:\[SYSTEM:[^\]]*(?:\]|\Z)"
    r"|# Context from my IDE setup:.*?## My request for Codex:"
    r"|<(system-reminder|environment_context|user_instructions|ide_context|ide_opened_file|ide_selection"
    r"|local-command-caveat|local-command-stdout|local-command-stderr|command-message|task-notification"
    r"|subagent_notification)>.*?(?:</\1>|\Z)"
    r"|<(file|image) (?:name|path)=[^>]*>.*?(?:</\2>|\Z))\s*"
)
_COMMAND = (
    r"(?s)<command-name>([^<]*)</command-name>\s*(?:<command-message>[^<]*</command-message>\s*)?"
    r"(?:<command-args>(.*?)</command-args>\s*)?"
)
_INPUT = r'(?s)\s*<user_input(?: mode="\w*")?>(.*)</user_input>\s*\Z'
_MACHINE = (
    r"(?i)(?:Caveat: The messages below were generated|This session is being continued from a previous conversation"
    r"|# AGENTS\.md instructions for |\[Request interrupted by user|Warmup\Z"
    r"|</?(?:bash-(?:input|stdout|stderr)|collaboration_mode|instructions|permissions[ _]instructions"
    r"|recommended_plugins|session_context|skill|turn_aborted|user-prompt-submit-hook|user_action|user_shell_command)\b)"
)
"""Beginnings of text that programs write in the place of a person."""
_HOUSEKEEPING = frozenset((
    "/clear", "/compact", "/config", "/context", "/cost", "/exit", "/help", "/ide", "/login", "/logout", "/mcp",
    "/model", "/quit", "/resume", "/status",
))  # fmt: skip
"""Commands that ask no model for anything.

Turns are counted by these and by what `asks` leaves out: who changes them raises `RULES` in `log/fold/__init__.py`.
"""
_INTERRUPTED = ("[Request interrupted by user", "<turn_aborted>")
_SHELL = ("<bash-input>", "<bash-stdout>", "<bash-stderr>")
"""Commands that a person ran directly, and their output."""
_SETTINGS = _HOUSEKEEPING.union((
    "/add-dir", "/agents", "/approvals", "/bug", "/compress", "/doctor", "/effort", "/export", "/fast", "/hooks",
    "/init", "/memory", "/mode", "/new", "/output-style", "/permissions", "/plugin", "/release-notes", "/rename",
    "/rewind", "/settings", "/stats", "/statusline", "/terminal-setup", "/theme", "/undo", "/upgrade", "/usage", "/vim",
))  # fmt: skip
"""Commands that do not describe the work, whatever their arguments are."""
_SMALL_TALK = frozenset((
    "continue", "go", "go ahead", "go on", "good evening", "good morning", "hallo", "hello", "hello there", "hey",
    "hey there", "hi", "hi claude", "hi there", "hola", "k", "no", "ok", "okay", "ping", "please continue", "proceed",
    "resume", "start", "sure", "test", "testing", "thank you", "thanks", "y", "yes", "yo",
))  # fmt: skip
_SLASH = r"(/[\w:.-]+)(\s|\Z)"
_PATH = r"(?:[~.]{0,2}/)?[^\s/]+(?:/[^\s/]*)+"


def preview_of(text: str) -> str:
    """Return a prompt on one line, if it says what the user wants; "" for a greeting, a setting, a program's text."""
    prompt = typed(without_preamble(text)).strip()
    if not prompt or re.match(_MACHINE, prompt):
        return ""
    if (command := re.match(_SLASH, prompt)) and command[1] in _SETTINGS:
        return ""
    plain = prompt[: PREVIEW + 1].casefold().strip(" \t\n.!?,;:-")
    if not plain or plain in _SMALL_TALK or re.fullmatch(_PATH, plain):
        return ""
    return one_line(prompt, PREVIEW)


def asks(text: str) -> bool:
    """Whether a text asks an agent for something. Interruptions, and commands that ask no model, do not."""
    typed_text = typed(without_preamble(text)).strip()
    return (
        bool(typed_text)
        and typed_text.split(maxsplit=1)[0] not in _HOUSEKEEPING
        and not typed_text.startswith(_INTERRUPTED + _SHELL)
    )


def is_title(title: str, workspace: str | None) -> bool:
    """Whether a title says more than the name of the workspace or a greeting."""
    folder = (workspace or "").rstrip("/").rpartition("/")[2]
    return bool(preview_of(title)) and title.strip() != folder


def without_preamble(text: str) -> str:
    """Return the text without what an agent put in front of it, such as `[SYSTEM: …]`."""
    while _may_begin(text, "[#<") and (match := re.match(_INJECTED, text)):
        text = text[match.end() :]
    return text


def _may_begin(text: str, marks: str) -> bool:
    """Whether a text may begin with one of these after white space. Most do not, so they need no pattern."""
    head = text[:_HEAD].lstrip()
    return head[0] in marks if head else bool(text)


def typed(text: str) -> str:
    """Return what a person typed, if an agent recorded it in tags; any other text unchanged."""
    if not _may_begin(text, "<"):
        return text
    if wrapped := re.match(_INPUT, text):
        return wrapped[1]
    match = re.match(_COMMAND, text)
    if match is None:
        return text
    return f"{match[1]} {(match[2] or '').strip()}".strip() + "\n" * bool(text[match.end() :]) + text[match.end() :]
