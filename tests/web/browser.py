"""The browser that the pages are tried in: the one that is installed, or the headless one that `make` got from npm."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Playwright

HEADLESS = Path(__file__).parents[2] / ".venv-browser" / "chromium"
"""Where `make test-web` unpacks a browser if none is installed."""


def browser_here() -> str:
    """The browser that is installed, or the one line that installs one."""
    names = (os.environ.get("TURNLOG_BROWSER", ""), "chromium", "chromium-browser", "google-chrome")
    found = next((path for name in (*names, str(HEADLESS / "chromium")) if name and (path := shutil.which(name))), None)
    if found is None:
        pytest.fail(
            "no browser: `apt install chromium`, or install npm and `make test-web` again, or set TURNLOG_BROWSER",
            pytrace=False,
        )
    return found


def launched(playwright: Playwright) -> Browser:
    """That browser, running. The one from npm brings the libraries and fonts that a small machine lacks."""
    path, environment = browser_here(), dict(os.environ)
    if Path(path).parent == HEADLESS:
        fonts = HEADLESS / "fonts.conf"
        places = "".join(f"<dir>{place}</dir>" for place in ("/usr/share/fonts", HEADLESS / "fonts"))
        fonts.write_text(f"<fontconfig>{places}<cachedir>{HEADLESS / 'fonts-cache'}</cachedir></fontconfig>")
        environment |= {"LD_LIBRARY_PATH": str(HEADLESS / "al2023" / "lib"), "FONTCONFIG_FILE": str(fonts)}
    return playwright.chromium.launch(executable_path=path, args=["--no-sandbox"], env=environment)
