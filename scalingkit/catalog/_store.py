"""Where the bytes are: the mirror first, then the cache, then the network. Every file is checked by sha256 on every use.

mirror  the folder SCALINGKIT_DATA, else ``../shared/data`` beside a checkout; never written to
cache   the folder SCALINGKIT_CACHE, else the operating system's cache folder
        pooch writes to a temporary name, checks the hash and renames: a bad download leaves nothing behind
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scalingkit.catalog._errors import CatalogError
from scalingkit.catalog._registry import CHECKOUT, Entry, File

Rebuild = Callable[[Mapping[str, Path]], bytes]
WORKERS = 8  # downloads at a time, where a table is made of many small files
TIMEOUT = 30.0  # seconds without a byte before a download is given up


def mirror() -> Path | None:
    """The mirror folder, or None. SCALINGKIT_DATA set to nothing means: no mirror."""
    named = os.environ.get("SCALINGKIT_DATA")
    if named is not None:
        if named and not Path(named).is_dir():
            raise CatalogError(f"SCALINGKIT_DATA={named} is not a folder: mend it, or unset it to download tables.")
        return Path(named) if named else None
    beside = CHECKOUT.parent / "shared" / "data"
    return beside if (CHECKOUT / "pyproject.toml").is_file() and beside.is_dir() else None


def cache_dir() -> Path:
    """The folder of downloaded tables (it may not exist yet)."""
    named = os.environ.get("SCALINGKIT_CACHE")
    if named:
        return Path(named)
    import pooch

    return Path(pooch.os_cache("scalingkit"))


def sha256(path: Path) -> str:
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def locate(entry: Entry, file: File) -> tuple[str, Path | None]:
    """("mirror" | "cache" | "download" | "mirror-only", path where there is one); reads no byte of it."""
    folder = mirror()
    for where, root in (("mirror", folder), ("cache", cache_dir())):
        if root is not None and (path := root / entry.id / file.name).is_file():
            return where, path
    return ("download", None) if file.url or file.rebuilt else ("mirror-only", None)


def fetch(entry: Entry, file: File, rebuild: Rebuild | None = None) -> Path:
    """Path of the verified file; ``rebuild`` makes a derived one. Raises CatalogError: what, where, what to do."""
    where, path = locate(entry, file)
    if where == "mirror-only":
        raise CatalogError(_not_here(entry, file))
    if path is not None and sha256(path) == file.sha256:
        return path
    if where == "mirror":
        assert path is not None
        raise CatalogError(
            f"{entry.id}: {path} is not the file the registry names ({path.stat().st_size} bytes, expected {file.bytes}; "
            f"sha256 {sha256(path)[:12]}..., expected {file.sha256[:12]}...). It is changed or truncated: copy it again, "
            "or unset SCALINGKIT_DATA to download it."
        )
    return _download(entry, file) if file.url else _rebuild(entry, file, rebuild)


def _rebuild(entry: Entry, file: File, rebuild: Rebuild | None) -> Path:
    """A derived file from its public origins, kept only if its bytes are those the registry names."""
    if rebuild is None:
        raise CatalogError(_not_here(entry, file))
    origins = [File(name=f"origins/{o['name']}", **{k: o[k] for k in ("url", "sha256", "bytes")}) for o in file.origins]
    with ThreadPoolExecutor(WORKERS) as pool:
        paths = list(pool.map(lambda origin: _download(entry, origin), origins))
    made = rebuild({o["name"]: path for o, path in zip(file.origins, paths, strict=True)})
    if hashlib.sha256(made).hexdigest() != file.sha256:
        raise CatalogError(
            f"{entry.id}: {file.name}, rebuilt from {len(origins)} verified public files, differs from the registry's. Nothing was "
            f"kept. {_otherwise(entry)}"
        )
    return _keep(cache_dir() / entry.id / file.name, made)


def _keep(path: Path, content: bytes) -> Path:
    """Written to a temporary name and renamed."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".part-")
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(content)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return path


def _not_here(entry: Entry, file: File) -> str:
    folder = mirror()
    place = folder / entry.id / file.name if folder else Path("SCALINGKIT_DATA") / entry.id / file.name
    why = file.mirror_only or "it is made from other files and has no public address of its own"
    how = f" How it is made: {file.derived}" if file.derived else ""
    return (
        f"{entry.id}: {file.name} cannot be downloaded: {why}{how} "
        f"Put the file at {place} (its sha256 must be {file.sha256}), with SCALINGKIT_DATA naming the folder above."
    )


def _download(entry: Entry, file: File) -> Path:
    """Through pooch: temporary name, hash, rename. A stale or damaged cached file is replaced only by a good one."""
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")
    target = cache_dir() / entry.id / file.name
    folder = target.parent
    try:
        return Path(
            pooch.retrieve(
                file.url,
                known_hash=f"sha256:{file.sha256}",
                fname=target.name,
                path=folder,
                downloader=pooch.HTTPDownloader(timeout=TIMEOUT),
            )
        )
    except requests.exceptions.HTTPError as e:
        raise CatalogError(f"{entry.id}: {file.url} answered {_status(e)}. {_otherwise(entry)}") from e
    except requests.exceptions.ChunkedEncodingError as e:
        raise CatalogError(f"{entry.id}: the download of {file.url} broke off. Try again. {_otherwise(entry)}") from e
    except requests.exceptions.RequestException as e:
        raise CatalogError(
            f"{entry.id}: {file.name} is neither in the mirror nor in the cache, and {file.url} cannot be reached "
            f"({type(e).__name__}). {_otherwise(entry)}"
        ) from e
    except ValueError as e:
        raise CatalogError(
            f"{entry.id}: what {file.url} gave is not the file the registry names (sha256 differs from "
            f"{file.sha256[:12]}...): truncated or changed at its source. Nothing was kept. {_otherwise(entry)}"
        ) from e
    except OSError as e:
        raise CatalogError(
            f"{entry.id}: cannot write to the cache {folder} ({e.strerror or e}): free space there, or set SCALINGKIT_CACHE."
        ) from e


def _status(e: Exception) -> str:
    response = getattr(e, "response", None)
    return f"HTTP {response.status_code}" if response is not None else str(e)


def _otherwise(entry: Entry) -> str:
    return f"Where there is no network, put the files in a folder {entry.id}/ and name the folder above in SCALINGKIT_DATA."


class Files(Mapping[str, Path]):
    """Name -> verified path, fetched when asked for; ``used`` remembers which, for the Dataset's sha256."""

    def __init__(self, entry: Entry, rebuild: Mapping[str, Rebuild] | None = None) -> None:
        self.entry, self.used, self.rebuild = entry, dict[str, str](), rebuild or {}

    def __getitem__(self, name: str) -> Path:
        file = self.entry.file(name)
        path = fetch(self.entry, file, self.rebuild.get(name))
        self.used[name] = file.sha256
        return path

    def __iter__(self) -> Iterator[str]:
        return (f.name for f in self.entry.files)

    def __len__(self) -> int:
        return len(self.entry.files)

    def sha256(self) -> str:
        """Of the one file used, or of the sorted list 'sha256  name' of several."""
        if len(self.used) == 1:
            return next(iter(self.used.values()))
        listing = "".join(f"{h}  {n}\n" for n, h in sorted(self.used.items()))
        return hashlib.sha256(listing.encode()).hexdigest()
