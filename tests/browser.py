"""A real browser for tests: Debian's Chromium, without a window and without a network."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """Path of the browser."""
    found = os.environ.get("TEMPORALNMF_CHROMIUM")
    found = found or next(filter(None, map(shutil.which, NAMES)), None)
    return found or _without(
        f"no browser: none of {', '.join(NAMES)} is on the path, nor is TEMPORALNMF_CHROMIUM set"
    )


def _without(reason: str) -> NoReturn:
    """Skip the test, or let it fail where a browser is required."""
    if os.environ.get("TEMPORALNMF_REQUIRE_BROWSER") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def launched() -> Iterator[Any]:
    """A running browser."""
    path = chromium()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _without('no playwright: pip install "temporalnmf[dev]"')
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def visited(browser: Any, path: Path, **options: Any) -> Iterator[Any]:
    """The page of a file; it must say nothing on the console and ask for nothing else."""
    context = browser.new_context(offline=True, **options)
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    yield page
    context.close()
    assert said == []
    assert [url for url in asked if not url.startswith("data:")] == [path.as_uri()]


def screenshot(page: Any, folder: Path, name: str) -> Path:
    """Keep a picture of the whole page, in TEMPORALNMF_SCREENSHOTS if that is set."""
    target = Path(os.environ.get("TEMPORALNMF_SCREENSHOTS", folder)) / f"{name}.png"
    page.screenshot(path=target, full_page=True)
    return target
