"""Tokens of services that are known by how they begin: data, as of a day. Look-alikes are in the tests beside them."""

from __future__ import annotations

AS_OF = "2026-11-16"
"""When this list was last compared with what services give out."""
_HEX, _MIXED, _DASHED = r"[a-f0-9]", r"[A-Za-z0-9]", r"[A-Za-z0-9_-]"

TOKENS: tuple[tuple[str, str, str], ...] = (
    ("token", "hf_", rf"{_MIXED}{{34}}(?![A-Za-z0-9_])"),  # Hugging Face, also of letters only
    ("API key", "tvly-", rf"(?:dev-|prod-)?{_DASHED}{{20,80}}"),  # Tavily
    ("token", "ntn_", rf"{_MIXED}{{40,60}}"),  # Notion
    ("token", "secret_", rf"{_MIXED}{{43}}(?![A-Za-z0-9])"),  # Notion, before 2024
    ("token", ":AA", rf"(?<=\d{{8}}:AA){_DASHED}{{33}}(?![A-Za-z0-9_-])"),  # Telegram
    ("token", ":APA91b", rf"{_DASHED}{{100,200}}"),  # Firebase Cloud Messaging
    ("API key", "pcsk_", rf"{_DASHED}{{40,120}}"),  # Pinecone
    ("API key", "tgp_v1_", rf"{_DASHED}{{30,80}}"),  # Together
    ("API key", "csk-", rf"{_MIXED}{{40,80}}"),  # Cerebras
    ("API key", "jina_", rf"{_DASHED}{{40,90}}"),
    ("API key", "fc-", rf"{_HEX}{{32}}(?![A-Za-z0-9])"),  # Firecrawl
    ("API key", "lsv2_pt_", rf"{_HEX}{{32}}_{_HEX}{{10}}"),  # LangSmith
    ("API key", "lsv2_sk_", rf"{_HEX}{{32}}_{_HEX}{{10}}"),
    ("token", "dp.pt.", rf"{_MIXED}{{40,44}}"),  # Doppler
    ("token", "dapi", rf"{_HEX}{{32}}(?:-\d)?(?![A-Za-z0-9])"),  # Databricks
    ("token", "hvs.", rf"{_DASHED}{{24,200}}"),  # Vault
    ("API key", "PMAK-", rf"{_HEX}{{24}}-{_HEX}{{34}}"),  # Postman
    ("API key", "rubygems_", rf"{_HEX}{{48}}"),
    ("token", "sq0atp-", rf"{_DASHED}{{22}}"),  # Square
    ("token", "shpss_", rf"{_HEX}{{32}}"),  # Shopify
    ("token", "shpca_", rf"{_HEX}{{32}}"),
    ("token", "glsa_", rf"{_MIXED}{{32}}_{_HEX}{{8}}"),  # Grafana
    ("token", "glc_", r"[A-Za-z0-9+/=]{32,400}"),
    ("API key", "NRAK-", r"[A-Z0-9]{27}"),  # New Relic
    ("API key", "phx_", rf"{_MIXED}{{40,60}}"),  # PostHog
    ("token", "sntrys_", r"[A-Za-z0-9+/=_-]{40,400}"),  # Sentry
    ("token", "pul-", rf"{_HEX}{{40}}"),  # Pulumi
    ("token", "fm2_", r"[A-Za-z0-9+/=_-]{60,900}"),  # Fly.io
    ("API key", "re_", rf"{_MIXED}{{8}}_{_MIXED}{{24}}"),  # Resend
    ("token", "ATCTT3x", r"[A-Za-z0-9_=-]{40,300}"),  # Atlassian
    ("token", "lin_oauth_", rf"{_HEX}{{64}}"),  # Linear
    ("token", "pat", rf"{_MIXED}{{14}}\.{_HEX}{{64}}"),  # Airtable
    ("token", "EZAK", rf"{_MIXED}{{54}}"),  # EasyPost
)
"""What to call it, how it begins, and what follows."""
DISCORD = r"[A-Za-z0-9_-]{22,26}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}(?![A-Za-z0-9_-])"
DISCORD_HINTS = ("MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT")
"""A bot's token begins with its number in base64."""
