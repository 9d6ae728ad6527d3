"""The library as one archive, so that executors run the very code that submitted them.

The archive's name is the digest of what is in it: a changed library is another file, an unchanged one is
reused.
"""

import os
import zipfile
from hashlib import sha256
from pathlib import Path

import tidemark

_SINCE_ALWAYS = (1980, 1, 1, 0, 0, 0)


def ensure_package(folder: Path) -> Path:
    """The archive of the installed library in ``folder``, made when it is not there yet."""
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
                entry = zipfile.ZipInfo(name, _SINCE_ALWAYS)
                package.writestr(entry, source.read_bytes(), zipfile.ZIP_DEFLATED)
        staged.rename(archive)
    return archive
