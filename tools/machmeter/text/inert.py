"""Text that others wrote, made inert in Markdown on GitHub: it is shown, and does nothing.

GitHub looks for mentions, references, commits, addresses and emoji in what Markdown has become, where an escaped
character is a plain one again. Only in code does it look for nothing: so all such text becomes a code span.
"""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote

LENGTH = 160  # characters of a name or a reason that are shown

# Control, format (bidirectional overrides among them), surrogate, private and unassigned characters; line separators.
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_MARKS = re.compile(r"(?P<kept>[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{2})"
                    r"[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+")  # fmt: skip


def plain(text: str, length: int = LENGTH) -> str:
    """Return `text` on one line, with what cannot be seen named ("[U+202E]"), and no longer than `length`."""
    line = _MARKS.sub(r"\g<kept>", " ".join(text[: 4 * length].split()))
    shown = "".join(f"[U+{ord(one):04X}]" if unicodedata.category(one) in _UNSEEN else one for one in line)
    return shown if len(shown) <= length and len(text) <= 4 * length else shown[: length - 1] + "…"


def code(text: str, length: int = LENGTH, *, cell: bool = False) -> str:
    """Return `text` as a code span; with `cell` it may stand in a table. Empty text gives a dash.

    A table splits its rows at "|" before anything else, and undoes an escaping even inside code; what stands behind a
    backslash there is read differently by different versions, and gets another bar.
    """
    line = plain(text, length)
    if not line:
        return "–"
    if cell:
        line = line.replace("\\|", "\\¦").replace("|", "\\|")
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    # One space on both sides is taken away again: it keeps backticks of the text from the fence.
    pad = " " if "`" in (line[0], line[-1]) else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def address(link: str) -> str:
    """Return `link` so that it can stand as the target of a Markdown link. Raises ValueError unless it is http(s)."""
    if not re.match(r"https?://[A-Za-z0-9.:\[\]-]+(/|$|[?#])", link):
        raise ValueError(f"{plain(link)} is not an address that begins with https:// or http://")
    return quote(link, safe="/:?#[]@!$&'+,;=%-._~")


def link(title: str, target: str) -> str:
    """Return a Markdown link; `title` is ours."""
    return f"[{title}]({address(target)})"
