"""What the pages of documentation name exists: links, anchors, paths, make's targets, commands and their options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

from helpers.project import ROOT
from machmeter import cli

PAGES = sorted(
    path for folder in (".", "docs", "docs/comments", "examples") for path in (ROOT / folder).glob("*.md")
)  # fmt: skip
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]

FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
# A program of ours by its path from the root, inside a text: a string that is a path whole may be of a file that a test
# makes.
PROGRAM = re.compile(r"(?<![\w/.\"'])(?:tools|tests|site/static)/[\w/-]+\.(?:py|js)\b")
TOP = ("tools/", "benchmarks/", "docs/", "site/", "tests/", "requirements/", ".github/", "examples/")
# Folders that appear when something is built or measured.
MADE = ("docs/pictures/",)


def _prose(text: str) -> str:
    return FENCE.sub("", text)


def _anchors(page: Path) -> set[str]:
    """The anchors GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", _prose(page.read_text(encoding="utf-8")), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def _spans(text: str) -> Iterator[str]:
    """Every piece of code: spans of the prose, and the lines of consoles without their comments."""
    yield from CODE.findall(_prose(text))
    for block in FENCE.findall(text):
        for line in block.splitlines():
            if line.startswith("$ "):
                yield line[2:].partition(" #")[0].strip()


def _commands() -> dict[str, set[str]]:
    """Every command by its full name, with its options."""
    found: dict[str, set[str]] = {}

    def below(command: object, name: str) -> None:
        for word, inner in getattr(command, "commands", {}).items():
            below(inner, f"{name} {word}".strip())
        if not hasattr(command, "commands"):
            found[name] = {option for item in command.params for option in item.opts}  # type: ignore[attr-defined]

    below(typer.main.get_command(cli.app), "")
    return found


def _targets() -> dict[str, str]:
    """Every target of make with its help."""
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    found = [re.match(r"([a-z-]+):(?!=).*?(?:## (.+))?$", line) for line in lines]
    return {match[1]: match[2] or "" for match in found if match}


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    for target in LINK.findall(_prose(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{name} links to {target}"
        if anchor:
            assert anchor in _anchors(linked), f"{name} links to {target}: no such heading"


@pytest.mark.parametrize("name", NAMES)
def test_paths_exist(name: str) -> None:
    files = [str(path.relative_to(ROOT)) for top in TOP for path in (ROOT / top).rglob("*") if path.suffix]
    for span in CODE.findall(_prose((ROOT / name).read_text(encoding="utf-8"))):
        if re.search(r"[\s<>*{}$]|NAME", span):
            continue
        if span.startswith(TOP) and not span.startswith(MADE):
            assert (ROOT / span).exists(), f"{name} names {span}"
        elif span.endswith((".py", ".js", ".html")) and "=" not in span:
            assert any(f"/{file}".endswith(f"/{span}") for file in files), f"{name} names {span}"


@pytest.mark.parametrize("name", NAMES)
def test_targets_of_make_exist(name: str) -> None:
    targets = _targets()
    for span in _spans((ROOT / name).read_text(encoding="utf-8")):
        if span.startswith("make "):
            words = [word for word in span.split()[1:] if re.fullmatch(r"[a-z-]+", word)]
            assert set(words[:1]) <= set(targets), f"{name} names {span!r}"


@pytest.mark.parametrize("name", NAMES)
def test_commands_and_their_options_exist(name: str) -> None:
    commands = _commands()
    groups = {command.split()[0] for command in commands if " " in command}
    for span in _spans((ROOT / name).read_text(encoding="utf-8")):
        match = re.match(r"(?:\.venv/bin/)?machmeter (?P<rest>[a-z].*)", span)
        if not match:
            continue
        words = re.split(r"\s+", match["rest"])
        command = " ".join(words[:2]) if words[0] in groups and len(words) > 1 else words[0]
        if command in groups:  # the group itself
            continue
        assert command in commands, f"{name} names {span!r}"
        named = {word for word in words if re.fullmatch(r"--[a-z-]+", word)}
        assert command == "run" or named <= commands[command] | {"--help"}, f"{name}: {span!r} has no {named}"


def test_the_index_names_every_page() -> None:
    linked = set(LINK.findall((ROOT / "docs" / "README.md").read_text(encoding="utf-8")))
    assert {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"} <= linked


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 130


def test_help_lists_every_target() -> None:
    phony = re.search(r"^\.PHONY: ((?:.*\\\n)*.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert phony
    names = set(phony[1].replace("\\", " ").split())
    helped = {name for name, text in _targets().items() if text}
    assert names == helped


def test_pages_that_code_names_exist() -> None:
    for path in [*(ROOT / "tools").rglob("*.py"), *(ROOT / ".github").rglob("*.yml"), *(ROOT / "tests").rglob("*.py")]:
        for page in re.findall(r"docs/[a-z-]+\.md", path.read_text(encoding="utf-8")):
            assert (ROOT / page).is_file(), f"{path.relative_to(ROOT)} names {page}"


def test_programs_that_code_names_exist() -> None:
    """In docstrings, comments and messages alike: a file that moves is named anew everywhere."""
    for folder in ("tools", "tests", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            for program in PROGRAM.findall(path.read_text(encoding="utf-8")):
                assert (ROOT / program).is_file(), f"{path.relative_to(ROOT)} names {program}"


@pytest.mark.parametrize("name", NAMES)
def test_no_page_says_a_long_paragraph_twice(name: str) -> None:
    """A page that was merged twice had whole sections again, headings and all."""
    if name.startswith("docs/comments/"):  # two machines may have the same to say
        return
    text = _prose((ROOT / name).read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if len(line) > 60 and not line.startswith(("|---", "| `"))]
    assert {line for line in lines if lines.count(line) > 1} == set()


def test_the_map_of_contributing_has_every_room_in_at_most_twelve_rows() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = text.partition("| you want to change")[2].partition("\n\n")[0].splitlines()[2:]
    assert len(rows) <= 12
    rooms = {path.parent.name for path in (ROOT / "tools" / "machmeter").glob("*/__init__.py")}
    assert {room for room in rooms if not any(f"tools/machmeter/{room}/" in row for row in rows)} == set()
