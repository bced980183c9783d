"""Placeholders: what stands where a secret would. Pure."""

from __future__ import annotations

import re

_PLACEHOLDERS = (
    r"\$[A-Za-z_{(]", r"%[s({d]", r"%[A-Z_]{2,40}%", "<[A-Za-z]", r"\{", r"\[[A-Za-z]", r"\*{3}", r"\.{3}", "…", "x{4}",
    r"your\b", "your[-_]", "my[-_]", "the[-_ ]", "some[-_]", "example", "changeme", "placeholder", "dummy", "fake",
    "mock", r"test\Z", r"test[-_]?(?:key|token|password|secret)\Z", r"process\.env", r"os\.environ", r"env\.", "getenv",
    r"settings\.", r"config\.", r"self\.", r"this\.", r"args\.", r"options\.",
    r"(?:none|null|nil|true|false|undefined)\Z",
    r"(?:str|string|bytes|int|hidden|secret|password|token)(?:\Z|[ |\[])", "required", "optional", r"\(",
    r"(?:function|await|new)\b", r"sha\d{1,3}[:-]",
    r"(?:u?int|float|(?:n?var)?char|bytes|str|string|utf|base|sha|md|argon|pbkdf|oauth)-?\d{1,4}[a-z]{0,3}(?:\Z|-[a-z]{1,20}\Z)",
    r"\d{1,4}[-+]?(?:to-?\d{1,4}-?)?(?:chars?|characters?|digits?|bits?|bytes?|days?|hours?)\b", "see[-_ ]",
)  # fmt: skip
_PLACEHOLDER = re.compile("|".join(_PLACEHOLDERS), re.IGNORECASE)
_PLACEHOLDER_NAME = re.compile(  # fake-api-key, TEST_API_KEY, challengePassword
    r"[A-Za-z_ -]{1,40}(?:[-_ ](?:key|token|secret|password|credentials?)|[-_ ](?:KEY|TOKEN|SECRET|PASSWORD)"
    r"|(?<=[a-z])(?:Key|Token|Secret|Password))"
)


def is_placeholder(value: str) -> bool:
    """Whether that only stands where a secret would: a variable, a type, an ellipsis."""
    if _PLACEHOLDER.match(value) is not None or len(set(value)) < 3:
        return True
    if len(value) >= 16 and len(set(value[-16:])) == 1:  # hf_xxxxxxxxxxxxxxxx
        return True
    is_begun = value.endswith(("...", "…")) and len(value) < 20  # sk-ant-...
    return is_begun or _PLACEHOLDER_NAME.fullmatch(value) is not None or "[redacted" in value or "REDACTED" in value
