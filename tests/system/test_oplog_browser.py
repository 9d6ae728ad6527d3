"""The example for browsers on the page about operations, in the distribution's Chromium."""

import json
import re
import shutil
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Page, sync_playwright
from tests.support.services.served_pipelines import ServedPipeline, served_pipeline
from tests.support.services.stream_copies import OperationSource

from tidemark.embedded.ports import free_port
from tidemark.settings import ROOT

pytestmark = pytest.mark.system

EXAMPLE_ON = ROOT / "docs" / "oplog.md"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
MISSING = (
    "There is no Chromium on this machine, and the example for browsers is tested in one. Install the "
    "distribution's package: apt-get install chromium"
)
LOADED = "document.title === '{} videos'"


def example() -> str:
    """The example as it is on the page."""
    (found,) = re.findall(r"```html\n(<script>.*?</script>)\n```", EXAMPLE_ON.read_text(), re.S)
    return str(found)


def browser() -> str:
    """The program."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    assert found, MISSING
    return found


@pytest.fixture
def served(services: Any, tmp_path: Path, shop: ThreadingHTTPServer) -> Iterator[ServedPipeline]:
    with served_pipeline(services, tmp_path, cors=[origin(shop)]) as made:
        yield made


@pytest.fixture
def shop() -> Iterator[ThreadingHTTPServer]:
    """A web server with one page, on an origin of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"<!doctype html><title>-</title>{self.server.page}".encode()  # type: ignore[attr-defined]
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=browser(), args=["--no-sandbox"])
        try:
            yield started.new_page()
        finally:
            started.close()


def origin(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}"


def test_H6_H7_C23_a_browser_keeps_a_copy_and_comes_back_without_a_gap_after_the_agent_is_restarted(
    served: ServedPipeline, shop: ThreadingHTTPServer, page: Page
) -> None:
    # Given: objects that were replicated, one of them deleted, and the page of the docs.
    port = free_port()
    shop.page = example().replace("127.0.0.1:8042", f"127.0.0.1:{port}")  # type: ignore[attr-defined]
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    with served.agents.agent(port=port) as agent:
        source = OperationSource(agent.url)
        source.put("a", "b", "c", parents=["user/1"])
        source.delete("c")
        served.replicate()
        page.goto(origin(shop))

        # Then: it has the replication, with its markers, and what happens afterwards.
        page.wait_for_function(LOADED.format(2))
        assert videos(page) == {"a", "b"}
        source.put("d")
        source.delete("a")
        page.wait_for_function("videos.has('d') && !videos.has('a')")
        page.evaluate("window.resets = 0; stream.addEventListener('reset', () => { window.resets += 1; })")
        agent.kill()

    # When: things change while no agent of this address lives, and it is started again.
    with served.agents.agent() as other:
        source.url = other.url
        source.delete("b")
        source.put("e")
    with served.agents.agent(port=port) as agent:
        # Then: the browser comes back by itself, exactly.
        page.wait_for_function("videos.has('e') && !videos.has('b')", timeout=60_000)
        assert videos(page) == {"d", "e"}
        assert page.evaluate("window.resets") == 0
        source.url = agent.url
        source.put("f")
        page.wait_for_function("videos.has('f')")
    assert [one for one in said if "CORS" in one] == []


def videos(page: Page) -> set[str]:
    """The ids that the page has."""
    return set(json.loads(page.evaluate("JSON.stringify([...videos.keys()])")))
