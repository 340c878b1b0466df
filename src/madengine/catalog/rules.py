"""What a card's name and paths may be.

A name is legal text as far as possible: spaces, quotes, ``$(``, ``;`` and any script are fine, because nothing that
carries a name is ever assembled into a shell string or a path without quoting. Refused is only what cannot be shown on
one line or would leave its folder. The checks are on the text; links in the file system are the package's own affair.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

_UNSHOWABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_STEPS = frozenset(("", ".", ".."))


def name_fault(name: str) -> str | None:
    """Why ``name`` cannot be the name of a card, or None when it can."""
    if "/" not in name and name.isprintable() and name.strip(" ."):
        return None
    if not name.strip():
        return "found an empty name, allowed is any text on one line"
    if unshowable(name):
        return f"found {shown(name)}, allowed is a name without line breaks and control characters"
    if not _STEPS.isdisjoint(name.split("/")):
        return f'found {shown(name)}, allowed is a name without an empty, "." or ".." part between slashes'
    return None


def all_plain(texts: Iterable[str]) -> bool:
    """A quick yes for the names and root paths of a usual package: none is refused, and all are normal as they stand.

    A no says nothing about which. Joined by slashes, the ends of the texts show in the same searches as their middles.
    """
    text = f"/{'/'.join(texts)}/"
    return text.isprintable() and not ("//" in text or "./" in text or "/ " in text)


def unshowable(text: str) -> bool:
    """Whether ``text`` holds a line break, a control character or half a surrogate pair."""
    return not text.isprintable() and _UNSHOWABLE.search(text) is not None


def package_path(value: str, base: str) -> str | None:
    """``value``, written relative to ``base``, as a normal path relative to the package; None when it is refused.

    ``base`` is the folder of the card's file, relative to the package and empty for the root. Refused are absolute
    paths, paths that leave the package, and what cannot be shown on one line.
    """
    if value.startswith("/") or unshowable(value):
        return None
    if not base and "./" not in value and "//" not in value and not value.endswith(("/", ".")):
        return value
    path = posixpath.normpath(posixpath.join(base, value))
    return None if path == ".." or path.startswith("../") else path


def path_fault(value: str) -> str:
    """The sentence for a path that :func:`package_path` refuses."""
    if unshowable(value):
        kind = "a path with control characters"
    else:
        kind = "an absolute path" if value.startswith("/") else "a path that leaves the package"
    return f"found {shown(value)}, {kind}; allowed is a path inside the package"


def shown(text: str, limit: int = 100) -> str:
    """``text`` in double quotes on one line, control characters as escapes, cut at ``limit`` characters."""
    cut = text if len(text) <= limit else text[:limit] + "..."
    if unshowable(cut):
        cut = _UNSHOWABLE.sub(lambda found: found.group().encode("unicode_escape", "surrogatepass").decode(), cut)
    return f'"{cut}"'
