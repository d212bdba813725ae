"""Small sites, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers import stores
from helpers.site_pages import built


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    stores.own(folder / "results")
    return built(folder)[0]
