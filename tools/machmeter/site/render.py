"""Templates into text: one environment for all pages, with everything escaped."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

import jinja2

from machmeter.errors import SiteUnbuildable
from machmeter.site.pages.shared import Page, Site
from machmeter.text import numbers

# Nothing but the site's own files: no inline script or style, no other host, no forms, no frames.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'"
)


def find_folder(given: Path | None = None) -> Path:
    """Return the folder with `templates` and `static`: the one given, or that of this package.

    Raises SiteUnbuildable where it has none.
    """
    folder = given or Path(__file__).parent
    if (folder / "templates" / "base.html").is_file() and (folder / "static").is_dir():
        return folder
    raise SiteUnbuildable(
        f"no templates in {folder}: name a folder like 'site' of machmeter with --templates, or leave it out"
    )


class Context(Protocol):
    """What a page is made from: a dataclass whose fields are the names that its template uses."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


class Renderer:
    """Fills templates of one folder."""

    def __init__(self, folder: Path) -> None:
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(folder / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        self._environment.filters |= {
            "value": numbers.value,
            "ratio": numbers.ratio,
            "percent": numbers.percent,
            "day": numbers.day,
            "minute": numbers.minute,
            "stamp": numbers.stamp,
            "speed": numbers.speed,
        }
        self._environment.globals |= {"policy": POLICY}

    def page(self, page: Page, site: Site, context: Context | Mapping[str, object]) -> str:
        """Return the text of `page`; the template knows the fields of `context` by name."""
        template = self._environment.get_template(page.template)
        named = (
            context
            if isinstance(context, Mapping)
            else {field.name: getattr(context, field.name) for field in dataclasses.fields(context)}
        )
        return template.render(page=page, site=site, root=page.root, **named)
