"""The tests of an adapter run where its framework is: `make test-adapters` has an environment for each."""

from importlib.util import find_spec

_NEEDS = {
    "langgraph": "langgraph",
    "openai_agents": "agents",
    "claude_sdk": "claude_agent_sdk",
    "pydantic_ai": "pydantic_ai",
    "adk": "google.adk",
    "strands": "strands",
}


def _is_missing(module: str) -> bool:
    try:
        return find_spec(module) is None
    except ModuleNotFoundError:
        return True


INSTALLED = [folder for folder, module in _NEEDS.items() if not _is_missing(module)]
collect_ignore = [*(folder for folder in _NEEDS if folder not in INSTALLED), *([] if INSTALLED else ["test_every.py"])]
