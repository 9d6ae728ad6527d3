"""The library as one zip archive, so that executors run the same code as the driver.

The archive's name contains the digest of its content: an unchanged library reuses its archive, a changed one
gets another.
"""

import os
import zipfile
from hashlib import sha256
from pathlib import Path

import tidemark

_FIXED_TIME = (1980, 1, 1, 0, 0, 0)
"""The modification time of every entry, so that equal libraries make equal archives."""


def ensure_package(folder: Path) -> Path:
    """The path of the archive in ``folder``, which is created where it is missing."""
    root = Path(tidemark.__file__).parent
    sources = sorted(root.rglob("*.py"))
    digest = sha256()
    for source in sources:
        digest.update(str(source.relative_to(root)).encode() + b"\0" + source.read_bytes())
    archive = folder / f"tidemark-{digest.hexdigest()[:16]}.zip"
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        staged = archive.with_suffix(f".{os.getpid()}")
        with zipfile.ZipFile(staged, "w", zipfile.ZIP_DEFLATED) as package:
            for source in sources:
                name = f"tidemark/{source.relative_to(root)}"
                entry = zipfile.ZipInfo(name, _FIXED_TIME)
                package.writestr(entry, source.read_bytes(), zipfile.ZIP_DEFLATED)
        staged.rename(archive)
    return archive
