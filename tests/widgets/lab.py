"""JupyterLab in a real Chromium, offline: ``with Lab(folder) as lab: page = lab.open(cells); page.locator(...)``.

Skips (marker ``browser``) where there is no Chromium. Pages are allowed to speak to the server alone: a request that
would leave this machine is refused and remembered in ``lab.outside``, so that a test can say there was none.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

import nbformat

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
PATIENCE = 120_000  # ms: the first cell imports JAX on a busy machine
TOKEN = "offline"


def chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for name in names if (path := shutil.which(name))), None)


class Lab:
    """One server and one browser; ``open`` writes a notebook, runs all of it and gives the page."""

    def __init__(self, folder: Path, *, dark: bool = False, size: tuple[int, int] = (1500, 1100)) -> None:
        self.folder, self.dark, self.size = Path(folder), dark, size
        self.outside: list[str] = []

    def __enter__(self) -> Lab:
        from playwright.sync_api import sync_playwright

        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = _free_port()
        self.log = (self.folder / "server.log").open("w")
        self.server = subprocess.Popen(
            _command(self.port, self.folder), env=self._env(), stdout=self.log, stderr=self.log
        )
        try:
            self._wait()
            self.playwright = sync_playwright().start()
            self.browser = self.playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        except BaseException:
            self._stop_server()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None) -> None:
        try:
            self.browser.close()
            self.playwright.stop()
        finally:
            self._stop_server()

    def open(self, cells: list[str], name: str = "board.ipynb", wait: str | None = None) -> Any:
        """The page after "Run All Cells"; ``wait``: a selector that must be there before it is given."""
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
        book.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
        nbformat.write(book, self.folder / name)
        width, height = self.size
        page = self.browser.new_page(viewport={"width": width, "height": height})
        page.route("**/*", self._guard)
        page.goto(f"http://127.0.0.1:{self.port}/lab/tree/{name}?token={TOKEN}&reset", timeout=PATIENCE)
        page.wait_for_selector(".jp-Notebook", timeout=PATIENCE)
        page.wait_for_selector("text=| Idle", timeout=PATIENCE)  # before that, running asks which kernel is meant
        run_all(page)
        if wait:
            page.wait_for_selector(wait, timeout=PATIENCE)
        return page

    def _guard(self, route: Any) -> None:
        url = route.request.url
        if url.startswith((f"http://127.0.0.1:{self.port}/", "data:", "blob:")):
            route.continue_()
        else:
            self.outside.append(url)
            route.abort()

    def _env(self) -> dict[str, str]:
        """Settings, history and caches in the folder: nothing of the user's is read or written."""
        settings = self.folder / ".settings" / "@jupyterlab" / "apputils-extension"
        settings.mkdir(parents=True, exist_ok=True)
        theme = "JupyterLab Dark" if self.dark else "JupyterLab Light"
        (settings / "themes.jupyterlab-settings").write_text(f'{{"theme": "{theme}"}}')
        quiet = settings / "notification.jupyterlab-settings"
        quiet.write_text('{"fetchNews": "false", "checkForUpdates": false}')
        # every cell stays in the page, scrolled out of sight or not
        tracker = self.folder / ".settings" / "@jupyterlab" / "notebook-extension"
        tracker.mkdir(parents=True, exist_ok=True)
        (tracker / "tracker.jupyterlab-settings").write_text('{"windowingMode": "none"}')
        own = {
            "JUPYTERLAB_SETTINGS_DIR": str(self.folder / ".settings"), "IPYTHONDIR": str(self.folder / ".ipython"),
            "JUPYTER_CONFIG_DIR": str(self.folder / ".config"), "JUPYTER_DATA_DIR": str(self.folder / ".data"),
            "JUPYTER_RUNTIME_DIR": str(self.folder / ".runtime"),
        }  # fmt: skip
        return {**os.environ, **own, "JAX_PLATFORMS": "cpu"}

    def _wait(self, seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.server.poll() is not None:
                raise RuntimeError(f"JupyterLab stopped: {(self.folder / 'server.log').read_text()[-2000:]}")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api?token={TOKEN}", timeout=2).close()
                return
            except OSError:
                time.sleep(0.3)
        raise TimeoutError("JupyterLab did not answer")

    def _stop_server(self) -> None:
        self.server.terminate()
        try:
            self.server.wait(20)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()
        self.log.close()


def run_all(page: Any) -> None:
    """The Run menu's "Run All Cells"."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.locator(".lm-Menu-itemLabel", has_text="Run All Cells").first.click()


def _command(port: int, folder: Path) -> list[str]:
    return [
        sys.executable, "-m", "jupyter", "lab", "--no-browser", f"--port={port}", f"--ServerApp.token={TOKEN}",
        "--allow-root", f"--ServerApp.root_dir={folder}", "--ServerApp.port_retries=0",
    ]  # fmt: skip


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])
