"""Mirror, cache, network: what is wrong is said, and a bad download leaves nothing behind."""

from __future__ import annotations

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from scalingkit.catalog import CatalogError, _registry, _store

GOOD = b"N,D,loss\n1e9,2e10,2.5\n" * 200
SHA = hashlib.sha256(GOOD).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """/good, /wrong (other bytes), /short (breaks off half way), anything else: 404."""

    def do_GET(self):
        body = {"/good": GOOD, "/wrong": GOOD[::-1], "/short": GOOD}.get(self.path)
        self.server.asked.append(self.path)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if self.path == "/short" else body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as s:
        s.asked = []
        thread = threading.Thread(target=s.serve_forever)
        thread.start()
        yield s
        s.shutdown()
        thread.join()


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """An empty mirror and an empty cache."""
    mirror, cache = tmp_path / "mirror", tmp_path / "cache"
    mirror.mkdir()
    monkeypatch.setenv("SCALINGKIT_DATA", str(mirror))
    monkeypatch.setenv("SCALINGKIT_CACHE", str(cache))
    return mirror, cache


def table(url: str = "", **more):
    file = _registry.File(name="runs.csv", sha256=SHA, bytes=len(GOOD), url=url, **more)
    return _registry.Entry("toy", "Toy", "MIT", "Nobody (2026)", "https://example.org", "0" * 40, (file,)), file


def address(server, path: str) -> str:
    return f"http://127.0.0.1:{server.server_port}{path}"


def left_in(folder):
    return sorted(p.name for p in folder.rglob("*") if p.is_file())


def test_a_good_download_is_kept_and_asked_for_once(server, folders):
    entry, file = table(address(server, "/good"))
    path = _store.fetch(entry, file)
    assert path.read_bytes() == GOOD
    assert _store.fetch(entry, file) == path
    assert server.asked == ["/good"]
    assert _store.locate(entry, file)[0] == "cache"
    assert left_in(folders[1]) == ["runs.csv"]


@pytest.mark.parametrize(
    ("path", "says"), [("/wrong", "sha256 differs"), ("/short", "broke off|sha256 differs"), ("/none", "HTTP 404")]
)
def test_a_bad_download_is_refused_and_nothing_is_kept(server, folders, path, says):
    entry, file = table(address(server, path))
    with pytest.raises(CatalogError, match=says):
        _store.fetch(entry, file)
    assert left_in(folders[1]) == []
    assert _store.locate(entry, file)[0] == "download"


def test_no_network_says_what_to_do(folders):
    entry, file = table("http://127.0.0.1:9/nobody-listens")
    with pytest.raises(CatalogError, match="cannot be reached.*SCALINGKIT_DATA"):
        _store.fetch(entry, file)
    assert left_in(folders[1]) == []


def test_a_damaged_cached_file_is_replaced_by_a_good_one(server, folders):
    cached = folders[1] / "toy" / "runs.csv"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(GOOD[:100])
    entry, file = table(address(server, "/good"))
    assert _store.fetch(entry, file).read_bytes() == GOOD


def test_a_damaged_cached_file_is_never_given_out(server, folders):
    cached = folders[1] / "toy" / "runs.csv"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(GOOD[:100])
    entry, file = table(address(server, "/wrong"))
    with pytest.raises(CatalogError, match="sha256 differs"):
        _store.fetch(entry, file)


def test_the_mirror_goes_first_and_is_not_written_to(server, folders):
    (folders[0] / "toy").mkdir()
    (folders[0] / "toy" / "runs.csv").write_bytes(GOOD)
    entry, file = table(address(server, "/good"))
    assert _store.fetch(entry, file) == folders[0] / "toy" / "runs.csv"
    assert server.asked == [] and left_in(folders[1]) == []


@pytest.mark.parametrize("damaged", [GOOD[:-7], GOOD[::-1], b""])
def test_a_changed_or_truncated_mirror_file_is_refused(server, folders, damaged):
    path = folders[0] / "toy" / "runs.csv"
    path.parent.mkdir()
    path.write_bytes(damaged)
    entry, file = table(address(server, "/good"))
    with pytest.raises(CatalogError, match="changed or truncated") as e:
        _store.fetch(entry, file)
    assert str(path) in str(e.value)
    assert path.read_bytes() == damaged and server.asked == []


def test_a_mirror_only_file_says_why_and_how(folders):
    entry, file = table(derived="one row a run.", mirror_only="the public original is a pickle.")
    with pytest.raises(CatalogError, match="original is a pickle.*one row a run") as e:
        _store.fetch(entry, file)
    assert SHA in str(e.value)
    assert _store.locate(entry, file)[0] == "mirror-only"


def test_a_mirror_that_is_not_a_folder_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("SCALINGKIT_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(CatalogError, match="not a folder"):
        _store.mirror()


def test_an_empty_setting_means_no_mirror(monkeypatch):
    monkeypatch.setenv("SCALINGKIT_DATA", "")
    assert _store.mirror() is None


def test_a_cache_that_cannot_be_written_is_said(server, folders, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SCALINGKIT_CACHE", str(tmp_path / "file"))
    entry, file = table(address(server, "/good"))
    with pytest.raises(CatalogError, match="SCALINGKIT_CACHE"):
        _store.fetch(entry, file)
