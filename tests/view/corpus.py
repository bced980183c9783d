"""Tokens of many services with what only looks like them, and sentences that tell a password, or do not.

The parts are put together here so that nobody mistakes them for real ones.
"""

from __future__ import annotations

import random
import string
from typing import NamedTuple

LETTERS = string.ascii_letters + string.digits
DASHED = LETTERS + "_-"
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits


def word(length: int, alphabet: str = LETTERS, seed: int = 7) -> str:
    """A word as a machine would choose it: letters and digits, always the same."""
    return "".join(random.Random(seed).choices(alphabet, k=length))


class Kind(NamedTuple):
    """How a token begins, what follows, and texts that are none although they begin so."""

    begin: str
    rest: str
    alike: tuple[str, ...]


KINDS = {
    "Anthropic": Kind("sk-" + "ant-api03-", word(90, DASHED), ("sk-ant-...", "sk-ant-api03-xxxxxxxxxxxxxxxxxxxx")),
    "OpenAI, of a project": Kind("sk-" + "proj-", word(48), ("sk-proj-your-key-here",)),
    "OpenAI": Kind("sk-", word(48), ("sk-toggleable__label-arrow-2", "sk-estimator-id-10")),
    "OpenRouter": Kind("sk-" + "or-v1-", word(64, HEX), ("sk-or-v1-...",)),
    "Stripe, secret": Kind("sk_" + "live_", word(24), ("sk_live_mode", "pk_live_" + word(24))),
    "Stripe, restricted": Kind("rk_" + "live_", word(24), ("rk_live_only",)),
    "Stripe, webhook": Kind("whsec_", word(32), ("whsec_...",)),
    "AWS": Kind("AKIA", word(16, string.ascii_uppercase + "234567"), ("AKIAxxxxxxxxxxxxxxxx", "AKIA0000")),
    "AWS, for a while": Kind("ASIA", word(16, string.ascii_uppercase + "234567"), ("ASIA", "ASIAPACIFIC")),
    "Google": Kind("AIza", word(35, DASHED), ("AIza...", "AIzaSy")),
    "Google, OAuth": Kind("ya29.", word(60, DASHED), ("ya29.example", "ya29.a0")),
    "Google, client": Kind("GOCSPX-", word(28, DASHED), ("GOCSPX-...",)),
    "GitHub": Kind("ghp_", word(36), ("ghp_...", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxx")),
    "GitHub, OAuth": Kind("gho_", word(36), ("gho_token",)),
    "GitHub, app": Kind("ghs_", word(36), ("ghs_server",)),
    "GitHub, fine": Kind("github_" + "pat_", word(22) + "_" + word(59), ("github_pat_name",)),
    "GitLab": Kind("glpat-", word(20, DASHED), ("glpat-your-token",)),
    "GitLab, runner": Kind("glrt-", word(20, DASHED), ("glrt-runner",)),
    "Slack, bot": Kind("xoxb-", "123456789012-1234567890123-" + word(24), ("xoxb-...", "xoxb-your-token")),
    "Slack, user": Kind("xoxp-", "123456789012-1234567890123-" + word(24), ("xoxp-...",)),
    "Slack, app": Kind("xapp-", "1-A0123456789-1234567890123-" + word(64, HEX), ("xapp-...",)),
    "Hugging Face": Kind("hf_", word(34), ("hf_hub_download", "hf_transfer")),
    "Hugging Face, letters only": Kind(
        "hf_", word(34, string.ascii_letters), ("hf_hub_download_and_cache_everything_now",)
    ),
    "npm": Kind("npm_", word(36), ("npm_config_registry", "npm_package_version")),
    "PyPI": Kind("pypi-" + "AgE", "IcHlwaS5vcmc" + word(60, DASHED), ("pypi-AgE...",)),
    "Groq": Kind("gsk_", word(52), ("gsk_...",)),
    "xAI": Kind("xai-", word(80), ("xai-grok-2", "xai-sdk")),
    "Perplexity": Kind("pplx-", word(48), ("pplx-70b-online", "pplx-7b-chat")),
    "NVIDIA": Kind("nvapi-", word(64, DASHED), ("nvapi-...",)),
    "Replicate": Kind("r8_", word(37), ("r8_snorm", "r8_unorm")),
    "Supabase": Kind("sbp_", word(40, HEX), ("sbp_name",)),
    "DigitalOcean": Kind("dop_v1_", word(64, HEX), ("dop_v1_...",)),
    "Shopify": Kind("shpat_", word(32, HEX), ("shpat_...",)),
    "Shopify, shared": Kind("shpss_", word(32, HEX), ("shpss_shared",)),
    "Linear": Kind("lin_api_", word(40), ("lin_api_client",)),
    "Linear, OAuth": Kind("lin_oauth_", word(64, HEX), ("lin_oauth_flow",)),
    "Figma": Kind("figd_", word(40, DASHED), ("figd_...",)),
    "Docker Hub": Kind("dckr_pat_", word(27, DASHED), ("dckr_pat_...",)),
    "Atlassian": Kind("ATATT3x", word(180, DASHED), ("ATATT3x...",)),
    "Atlassian, CI": Kind("ATCTT3x", word(180, DASHED), ("ATCTT3x...",)),
    "SendGrid": Kind("SG.", word(22, DASHED) + "." + word(43, DASHED), ("SG.mail.send", "SG.UI.Components")),
    "age": Kind("AGE-SECRET-KEY-1", word(58, UPPER), ("AGE-SECRET-KEY-1...",)),
    "Tavily": Kind("tvly-", "dev-" + word(32), ("tvly-...", "tvly-search")),
    "Notion": Kind("ntn_", word(46), ("ntn_name",)),
    "Notion, before 2024": Kind("secret_", word(43), ("secret_manager_client", "secret_" + word(20, HEX))),
    "Telegram": Kind("12345678", "9:AA" + word(33), ("12345678:AAPL", "12:AA", "99999999:AAA")),
    "Discord": Kind("MTEx", word(20) + "." + word(6) + "." + word(30), ("MTServer.config.loader", "NTFS.volume.name")),
    "Firebase": Kind(word(11) + ":APA91b", word(134, DASHED), ("x:APA91b", "abc:APA91bShort")),
    "Pinecone": Kind("pcsk_", word(60), ("pcsk_...",)),
    "Together": Kind("tgp_v1_", word(43, DASHED), ("tgp_v1_...",)),
    "Cerebras": Kind("csk-", word(48), ("csk-like",)),
    "Jina": Kind("jina_", word(60), ("jina_embeddings_v3",)),
    "Firecrawl": Kind("fc-", word(32, HEX), ("fc-list", "fc-" + word(40, HEX))),
    "LangSmith": Kind("lsv2_" + "pt_", word(32, HEX) + "_" + word(10, HEX), ("lsv2_pt_...",)),
    "Doppler": Kind("dp.pt.", word(43), ("dp.pt.x",)),
    "Databricks": Kind("dapi", word(32, HEX), ("dapifoo", "dapi" + word(40, HEX))),
    "Vault": Kind("hvs.", word(90, DASHED), ("hvs.client",)),
    "Postman": Kind("PMAK-", word(24, HEX) + "-" + word(34, HEX), ("PMAK-...",)),
    "RubyGems": Kind("rubygems_", word(48, HEX), ("rubygems_version",)),
    "Square": Kind("sq0atp-", word(22, DASHED), ("sq0atp-...",)),
    "Grafana": Kind("glsa_", word(32) + "_" + word(8, HEX), ("glsa_name",)),
    "New Relic": Kind("NRAK-", word(27, UPPER), ("NRAK-...",)),
    "PostHog": Kind("phx_", word(43), ("phx_ids",)),
    "Sentry": Kind("sntrys_", word(80), ("sntrys_...",)),
    "Pulumi": Kind("pul-", word(40, HEX), ("pul-request", "pul-" + word(12, HEX))),
    "Fly.io": Kind("fm2_", word(120), ("fm2_synth",)),
    "Resend": Kind("re_", word(8) + "_" + word(24), ("re_match", "re_compile_all")),
    "Airtable": Kind("pat", word(14) + "." + word(64, HEX), ("pattern.abcdef", "path.join")),
    "EasyPost": Kind("EZAK", word(54), ("EZAK...",)),
}
PLACES = (
    "{}",
    "it is `{}`, keep it.",
    '{{"value": "{}"}}',
    "VALUE={} run",
    "https://a.example/?v={}&x=1",
)
ALIKE = ("{}your-api-key-here", "{}...", "{}${{TOKEN}}", "{}<token>", "{}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")
"""What stands in for a token of any kind, behind how it begins."""

SAID = (
    ("the password: hunter2-blue works", "hunter2-blue"),
    ("The password is hunter2-blue.", "hunter2-blue"),
    ("the password was hunter2", "hunter2"),
    ("password: hunter2", "hunter2"),
    ("Password: Tr0ub4dor&3", "Tr0ub4dor&3"),
    ("Log in with the password: Sommer2024! and tell me.", "Sommer2024"),
    ("the password for the shop is Sommer!Wind, ask Ada", "Sommer!Wind"),
    ("my password is `s3same`", "s3same"),
    ('use the password "s3same-open"', "s3same-open"),
    ("the root password will be r00t-me", "r00t-me"),
    ("the password is now: n3wer-one", "n3wer-one"),
    ("passphrase: correct4horse", "correct4horse"),
    ("the passcode is a1b2c3d4", "a1b2c3d4"),
    ("the PASSWORD of ada on db1 is k4tze#hund", "k4tze#hund"),
    ("the API key is q8Zk2mPv0aLx7Rt", "q8Zk2mPv0aLx7Rt"),
    ("API key: abcd1234efgh5678", "abcd1234efgh5678"),
    ("my secret key was 9fJ2kLm8Qw1z", "9fJ2kLm8Qw1z"),
    ("the token is `q8Zk2mPv`", "q8Zk2mPv"),
    ("access token: q8Zk2mPv0aLx7Rt", "q8Zk2mPv0aLx7Rt"),
    ("the token for staging is q8Zk2mPv0aLx7Rt", "q8Zk2mPv0aLx7Rt"),
    ("the password is swordfish", "swordfish"),
    ("password: correct horse battery staple", "correct horse"),
    ("passwort: Sommer2024", "Sommer2024"),
    ("the PIN is 4711", "4711"),
)
"""Sentences, and what nobody else should read in them."""
NOT_SAID = (
    "password: see below",
    "The password is wrong.",
    "the password is required, and the token is optional",
    "password: your-password",
    "password: <password>",
    "password: ${PASSWORD}",
    "the password is $DB_PASSWORD2",
    "the password is stored in settings.py",
    "the password is base64-encoded, the token is sha256-hashed",
    "password: argon2id",
    "Passwords: see chapter 12345678.",
    "the password is 8-64 characters long",
    "password: 12chars or more",
    "the password is `null`",
    'password is "invalid"',
    "password is None",
    "the token is not None and the secret is not set",
    "the token is rs256-signed",
    "token: 1500",
    "the token is at index 1500",
    "the password for the shop is in the vault",
    "the API key is read from os.environ",
    "the API key is `YOUR_API_KEY`",
    "the api key: see https://example.com/v1/keys",
    "password: string; token: str | None = None",
    "password: varchar255",
    "secret: the-secret",
    "the password was changed on 2026-11-16",
    "the secret is to begin early",
    "the token is valid for 3600s",
    "the password is ada@example.com's business",
    "if the password is p1.value(x)",
    "commit " + word(40, HEX),
    "session 550e8400-e29b-41d4-a716-446655440000",
    "the token is 550e8400 tokens long",
    "sha256:" + "ab12" * 16,
    "a passing test: test_login_2fa passes in 12ms",
    "the key is user_id_2000",
    "the password is oauth2-based",
    "pass 1: collect4 names",
)
"""What is said about passwords and keys without telling one."""
