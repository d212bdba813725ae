"""The comment made of a comparison: what it says, that it fits, and that nothing in it does anything."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

import cmarkgfm
import msgspec
import pytest
from cmarkgfm.cmark import Options

from helpers import comment_samples as samples
from helpers.verdicts import comparison, everywhere, finding
from machmeter.compare import judge, markdown
from machmeter.compare.documents import Described, Difference, Lone, Mean, Shift
from machmeter.text import inert, shorten

LINK = "https://example.org/c"


# ------------------------------------------------------------------ what it says


def test_no_change_is_three_lines() -> None:
    """What was compared, that nothing changed, how many failed; which commits, where; and where the rest is."""
    found = comparison(findings=[finding(verdict="no change"), finding(cell="b", verdict="no change")])
    assert [line for line in markdown.render(found, link=LINK).splitlines() if line] == [
        "### Machmeter on `xeon-1`: no change",
        "Compared 2 numbers of 2 cells: no change, 0 cells failed.",
        "base `bbbbbbbb` → head `aaaaaaaa`; stack `cpu`; 8 rounds, interleaved; CPU `Xeon`. "
        "[All numbers](https://example.org/c)",
    ]


@pytest.mark.parametrize(
    ("verdicts", "heading", "line"),
    [
        (["no change", *["undecided"] * 4], "no regression found; 4 of 5 undecided",
         "Compared 5 numbers of 5 cells: 1 without change, 4 undecided, 0 cells failed."),
        (["no change", "not judged"], "no regression found; 1 of 2 not judged",
         "Compared 2 numbers of 2 cells: 1 without change, 1 not judged, 0 cells failed."),
        (["improvement", "undecided"], "1 improvement; 1 of 2 undecided",
         "Compared 2 numbers of 2 cells: 1 changed, 1 undecided, 0 cells failed."),
    ],
)  # fmt: skip
def test_what_is_not_known_is_in_the_title_and_in_a_table(verdicts: list[str], heading: str, line: str) -> None:
    """The form of three lines is only for what is known not to have changed."""
    words = "a change of 2 % cannot be excluded"
    findings = [finding(cell=f"c{place}", verdict=verdict, words=words) for place, verdict in enumerate(verdicts)]
    text = markdown.render(comparison(findings=findings))
    assert text.splitlines()[0] == f"### Machmeter on `xeon-1`: {heading}"
    assert text.splitlines()[2] == line
    assert f"`{words}`" in text
    assert "<details><summary>Undecided (" in text or "<details><summary>Not judged: 1 number" in text


def test_what_could_not_be_judged_is_not_called_unchanged() -> None:
    """All of it is undecided."""
    findings = [finding(cell=f"c{place}", verdict="undecided") for place in range(4)]
    text = markdown.render(comparison(result="could not judge", findings=findings))
    assert text.startswith("### Machmeter on `xeon-1`: could not judge; 4 of 4 undecided\n")
    assert "no change" not in text


def test_libraries_that_explain_every_row_are_named_once() -> None:
    """The line above the tables says it."""
    packages = [Difference(name="openvino", base="1", head="2", pinned=True)]
    findings = [finding(), finding(cell="cpu.openvino.ViTB16(int8, 1)")]
    text = markdown.render(comparison(result="regression", findings=findings, packages=packages))
    assert text.count("openvino 1 → 2") == 1


def test_failures_and_regressions_come_before_improvements() -> None:
    """Whatever the order in the comparison."""
    found = comparison(
        result="regression",
        findings=[finding(verdict="improvement", cell="i"), finding(cell="r")],
        lone=[
            Lone(cell="n", metric="time_forward", kind="new", reason="not in base"),
            Lone(cell="m", metric="time_forward", kind="removed", reason="not in head"),
            Lone(cell="f", metric="time_forward", kind="failed", reason="crashed"),
        ],
    )
    text = markdown.render(found)
    places = [text.index(f"| `{cell}` |") for cell in "fmrin"]
    assert places == sorted(places)
    assert text.startswith(
        "### Machmeter on `xeon-1`: 1 cell newly failing, 1 cell no longer measured, 1 regression, 1 improvement\n"
    )
    assert "<details><summary>New (1)</summary>" in text


def test_every_change_has_its_interval_or_says_why_there_is_none() -> None:
    """Speed, memory and fidelity alike, in units that a reader knows."""
    found = comparison(
        result="regression",
        findings=[
            finding(),
            finding(metric="peakmem_forward", unit="bytes", base=8e8, head=1e9, ratio=1.25, low=1.24, high=1.26),
            finding(metric="track_top1_agreement", unit="fraction", better="higher", base=0.992, head=0.950,
                    ratio=0.9577, low=None, high=None, pairs=1),
            finding(metric="track_sqnr", unit="dB", base=30.0, head=21.5, ratio=0.72, low=None, high=None, pairs=1),
            finding(metric="track_artifact_size", unit="bytes", base=1e6, head=2e6, ratio=2.0, low=None, high=None,
                    pairs=1),
            finding(metric="time_other", ratio=4.0, low=3.9, high=4.1, base=1.0, head=4.0),
            finding(metric="track_errors", unit="errors", base=0.0, head=5.0, ratio=None, low=None, high=None,
                    words="from 0 to 5"),
        ],
    )  # fmt: skip
    rows = [line.split(" | ", 1)[1] for line in markdown.render(found).splitlines() if line.startswith("| `cpu")]
    assert rows == [
        "latency of one forward call | 10.00 ms | 11.20 ms | +12.0 % (+10.0 to +14.0 %) |",
        "peak resident memory | 800.0 MB | 1.000 GB | +25.0 % (+24.0 to +26.0 %) |",
        "top-1 agreement with fp32 | 0.992 | 0.950 | \N{MINUS SIGN}4.2 points (one value each) |",
        "signal to quantization noise | 30.00 dB | 21.50 dB | \N{MINUS SIGN}8.5 dB (one value each) |",
        "artifact size | 1.000 MB | 2.000 MB | +100.0 % (one value each) |",
        "`time_other` | 1.000 s | 4.000 s | × 4.00 (3.90 to 4.10) |",
        "`track_errors` | `0 errors` | `5.000 errors` | `from 0 to 5` |",
    ]


def test_a_gain_in_speed_says_what_it_cost() -> None:
    """The same cell answers worse: both rows say so."""
    findings = [
        finding(verdict="improvement", ratio=0.5, low=0.49, high=0.51),
        finding(metric="track_top1_agreement", unit="fraction", better="higher", low=None, high=None, pairs=1),
    ]
    text = markdown.render(comparison(result="regression", findings=findings))
    assert "| but worse: top-1 agreement with fp32 |" in text
    assert "| but better: latency of one forward call |" in text


def test_library_differences_stand_beside_the_numbers_they_may_explain() -> None:
    """OpenVINO beside cells of OpenVINO; what no change asked for is told apart."""
    packages = [
        Difference(name="openvino", base="2026.2.1", head="2026.4.1", pinned=True),
        Difference(name="numpy", base="2.3.0", head="2.4.0"),
    ]
    findings = [finding(), finding(cell="cpu.eager.ResNet50(fp32, 8)")]
    text = markdown.render(comparison(result="regression", findings=findings, packages=packages))
    assert "Libraries that this change pins: `openvino 2026.2.1 → 2026.4.1`." in text
    assert "Libraries that differ without being pinned: `numpy 2.3.0 → 2.4.0`." in text
    assert [line.endswith("| `openvino 2026.2.1 → 2026.4.1` |") for line in text.splitlines() if "12.0 %" in line] == [
        True, False,
    ]  # fmt: skip


def test_not_comparable_says_why_and_never_a_percentage() -> None:
    """Not even where somebody has put findings into the comparison."""
    found = comparison(
        result="could not judge",
        incomparable=["CPU differs: A and B"],
        findings=[finding()],
        means=[Mean(metric="time_forward", ratio=1.2, cells=3)],
    )
    text = markdown.render(found)
    assert text.startswith("### Machmeter on `xeon-1`: not comparable\n")
    assert "- `CPU differs: A and B`" in text
    assert "%" not in text


def test_a_machine_that_moved_is_said_before_any_number() -> None:
    """With how far, and how sure that is."""
    shift = Shift(ratio=1.08, low=1.06, high=1.10, control="control.Machine")
    text = markdown.render(comparison(result="regression", findings=[finding()], shift=shift))
    assert text.startswith("### Machmeter on `xeon-1`: 1 regression; the machine itself moved\n")
    words = "its control `control.Machine` by +8.0 % (+6.0 to +10.0 %)."
    assert text.index(words) < text.index("#### Regressions")


def test_a_side_that_could_not_be_measured_is_said_once() -> None:
    """Not in a row for each cell that it would have had."""
    lone = [Lone(cell=str(n), metric="time_forward", kind="failed", reason="does not build") for n in range(50)]
    head = Described(label="topic", commit="a" * 40, error="does not build")
    text = markdown.render(comparison(result="could not judge", lone=lone, head=head))
    assert text.startswith("### Machmeter on `xeon-1`: head could not be measured\n")
    assert text.count("does not build") == 1
    assert "50 cells failed" in text


def test_what_needs_attention_comes_first_among_machines() -> None:
    """A regression, then what is missing, then what could not be judged, then the rest."""
    found = [
        comparison(machine="fine", findings=[finding(verdict="no change")]),
        comparison(machine="odd", result="could not judge"),
        markdown.Unusable(name="gone", reason="is not there"),
        comparison(machine="slow", result="regression", findings=[finding()]),
    ]
    text = markdown.render_all(found)
    assert re.findall(r"^### Machmeter on `(\w+)`", text, re.MULTILINE) == ["slow", "gone", "odd", "fine"]


def test_the_samples_in_docs_are_what_is_rendered() -> None:
    """`python tests/helpers/comment_samples.py --write` writes them anew."""
    there = {path.name: path.read_text(encoding="utf-8") for path in samples.FOLDER.glob("*.md")}
    there.pop("README.md", None)
    assert there == samples.comments()


# ------------------------------------------------------------------ that it fits


@pytest.mark.parametrize("limit", [60_000, 5_000, 1_000, 200])
def test_two_thousand_rows_are_shortened_at_a_row(limit: int) -> None:
    """With how many there are more, and where; whole rows only, and whole characters."""
    findings = [finding(cell=f"netz.größe-✓.N{number}()") for number in range(2000)]
    text = markdown.render(comparison(result="regression", findings=findings), link=LINK, limit=limit)
    assert len(text.encode()) <= limit
    if limit >= 1_000:
        assert len(text.encode()) > 0.6 * limit
        rows = [line for line in text.splitlines() if line.startswith("| `netz")]
        assert all(re.fullmatch(r"\| `netz\.größe-✓\.N\d+\(\)` \|.* \(\+10\.0 to \+14\.0 %\) \|", row) for row in rows)
        assert len(rows) <= 40 or "<details><summary>Regressions: 1\N{NO-BREAK SPACE}960 more</summary>" in text
        left = re.findall(
            r"^([\d\N{NO-BREAK SPACE}]+) more rows?: \[all numbers\]\(https://example.org/c\)", text, re.M
        )
        assert sum(int(count.replace("\N{NO-BREAK SPACE}", "")) for count in left) == 2000 - len(rows)


def test_many_machines_with_many_rows_share_the_room() -> None:
    """Each is named and none takes it all."""
    findings = [finding(cell=f"a.b.N{number}()") for number in range(500)]
    long = "\U0001d538" * 300
    heavy = {"host": {"CPU": long, "GPU": long}, "base": Described(label=long, error=long, stack=long[:100])}
    found = [
        comparison(machine=f"m{number}", result="regression", findings=findings, **(heavy if number % 2 else {}))
        for number in range(40)
    ]
    text = markdown.render_all(found, link=LINK)
    assert len(text.encode()) <= 60_000
    assert len(re.findall(r"^### Machmeter on", text, re.MULTILINE)) == 40


def test_a_machine_with_little_to_say_leaves_its_room_to_the_others() -> None:
    """Two long comparisons and a short one fill the comment."""
    findings = [finding(cell=f"a.b.N{number}()") for number in range(2000)]
    long = [comparison(machine=name, result="regression", findings=findings) for name in "ab"]
    text = markdown.render_all([*long, markdown.Unusable(name="c", reason="is not there")])
    assert 59_000 < len(text.encode()) <= 60_000


def test_the_longest_text_that_the_schema_allows_fits() -> None:
    """Every name at its full length, in characters of four bytes."""
    long = "\U0001d538" * 300
    found = comparison(
        machine=long, result="could not judge", incomparable=[long * 3] * 50, notes=[long * 3] * 100,
        host={f"{number}{long[5:]}": long * 3 for number in range(2000)},
        packages=[Difference(name=long, base=long, head=long) for _ in range(2000)],
        lone=[Lone(cell=long, metric=long, kind="failed", reason=f"{number}{long}") for number in range(500)],
        base=Described(label=long, error=long, environment=long), head=Described(label=long, error=long),
    )  # fmt: skip
    text = markdown.render(found, link=LINK)
    assert len(text.encode()) <= 60_000
    assert "Fails in head, worked in base" in text


def test_a_table_without_rows_has_no_head() -> None:
    """And one with a row has room for both."""
    block = shorten.Block(before="T", head="| a |", rows=["| 1 |"] * 1200)
    assert shorten.fit([block], 40, None) == ("T\n\n1\N{NO-BREAK SPACE}200 more rows, in the measurements of the run")
    assert shorten.fit([block], 80, None).startswith("T\n| a |\n| 1 |\n")
    assert len(shorten.fit([block], 80, None).encode()) <= 80


def test_a_block_without_room_says_how_many_rows_it_has() -> None:
    """The first block takes what there is."""
    blocks = [shorten.Block(before="A", rows=["é" * 20] * 3), shorten.Block(before="B", rows=["x" * 50] * 9)]
    assert shorten.fit(blocks, 200, "there") == "\n".join(["A", *["é" * 20] * 3, "", "B", "", "9 more rows: there"])


# ------------------------------------------------------------------ that it does nothing

HOSTILE = [
    "<img src=x onerror=alert(1)>", "<script>alert(1)</script>", "</details></td></table><h1>x",
    "<!-- machmeter: comparison -->",
    "-->", "@everyone", "@torvalds/team", "a@example.org", "#12", "GH-1", "owner/repo#1", "octo/cat@" + "a" * 40,
    "d" * 40, "https://evil.example/x", "www.evil.example", "[x](https://evil.example)",
    "![x](https://evil.example/x.png)",
    "[x]: https://evil.example", ":x: :tada:", "a|b", "a\\|b", "a\\\\|b|", "`", "``` \n# x", "``a`b",
    "`code` @ann", "\\`@ann`",
    "**b** _i_ ~~s~~", "line\n\n# heading", "line\r\n- item", "| a |\n|---|\n| b |", "$x$ $`y`$",
    "&#64;everyone &lt;b&gt;",
    "\u202eevil\u202c", "a\u2028b", "a\x00b\x1b[31m", "a\u200bb", "- [ ] task", "[^1]", "e\u0301" + "\u0300" * 50,
    "../../x", "   ", "\\", "x\\", "'\"", "<https://evil.example>", "\ufeff", "//# 1", "~~~", "---", "    code",
]  # fmt: skip


class Rendered(HTMLParser):
    """What GitHub would show: elements, the targets of links, and the text outside and inside of code."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.links: set[str] = set()
        self.code: list[str] = []
        self.outside = ""
        self.comments: list[str] = []
        self.inside = False
        self.feed(cmarkgfm.github_flavored_markdown_to_html(text, Options.CMARK_OPT_UNSAFE))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.links |= {str(value) for name, value in attrs if name in ("href", "src")}
        assert {name for name, _ in attrs} <= {"href", "align"}
        if tag == "code":
            assert not self.inside
            self.inside = True
            self.code.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "code":
            self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.code[-1] += data
        else:
            self.outside += data

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


# What GitHub looks for in the text outside of code, after Markdown.
ACTIVE = re.compile(r"@\w|#\d|GH-\d|\b[0-9a-f]{7,40}\b|https?:|www\.|:\w+:|\$|evil|alert")
ALLOWED = {"h3", "h4", "p", "table", "thead", "tbody", "tr", "th", "td", "code", "details", "summary", "ul", "li", "a",
           "strong"}  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_in_the_measurements_does_anything(text: str) -> None:
    """Every Markdown and HTML character, mention, reference and address is text in code, and no table breaks."""
    for found in (everywhere(text), msgspec.structs.replace(everywhere(text), incomparable=[text])):
        comment = markdown.render_all([found, markdown.Unusable(name=text, reason=text)], link=LINK)
        rendered = Rendered(comment)
        assert rendered.elements <= ALLOWED
        assert rendered.links == {LINK}
        assert rendered.comments == []
        assert not ACTIVE.search(rendered.outside), ACTIVE.search(rendered.outside)
        shown = inert.plain(text).replace("\\|", "\\¦")
        if shown:
            assert sum(shown in code.replace("\\¦", "\\|").replace("\\|", "\\¦") for code in rendered.code) >= 8
        assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\u2028\u0000-\u0008\u001b]", comment)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_row_has_the_cells_of_its_table(text: str) -> None:
    """A bar in a name does not move what stands behind it into another column."""
    found = comparison(
        lone=[Lone(cell=text, metric="time_forward", kind="failed", reason=text)],
        findings=[finding(cell=text, metric=text, unit="", base=2.0, head=3.0)],
    )
    html = cmarkgfm.github_flavored_markdown_to_html(markdown.render(found), Options.CMARK_OPT_UNSAFE)
    rows = [
        [unescape(re.sub("<.*?>", "", cell)) for cell in re.findall("<td.*?>(.*?)</td>", row, re.DOTALL)]
        for row in re.findall("<tr>.*?</tr>", html, re.DOTALL)
    ]
    name = inert.plain(text).replace("\\|", "\\¦") or "–"
    assert [row for row in rows if row] == [
        [name, "latency of one forward call", name],
        [name, name, "2.000", "3.000", "+12.0 % (+10.0 to +14.0 %)"],
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\r\nlines\tand  spaces", "two lines and spaces"),
        ("\u202eevil", "[U+202E]evil"),
        ("a\x00b", "a[U+0000]b"),
        ("\U000e0041", "[U+E0041]"),
        ("e" + "\u0301" * 50 + "x", "e\u0301\u0301x"),
        ("x" * 161, "x" * 159 + "…"),
        ("größe", "größe"),
    ],
)
def test_text_is_one_line_of_what_can_be_seen(text: str, shown: str) -> None:
    """Control, bidirectional and unassigned characters are named; marks do not pile up over other lines."""
    assert inert.plain(text) == shown


def test_a_link_must_be_an_address() -> None:
    """Of the whole comment only it is a link, and it comes from whoever calls."""
    assert inert.link("x", "https://example.org/a b)(<c>?d=[e]") == "[x](https://example.org/a%20b%29%28%3Cc%3E?d=[e])"
    for wrong in ("javascript:alert(1)", "//example.org", "https:evil", "ftp://x/"):
        with pytest.raises(ValueError, match="is not an address"):
            inert.link("x", wrong)


def test_two_thousand_rows_take_seconds() -> None:
    """The judge and the text of a large comparison come from one call each; `docs/comments/README.md` has the time."""
    found = judge.compare(samples.all_samples()["many-rows"])
    assert len(found.findings) == 2000
    assert len(markdown.render(found, link=LINK).encode()) <= 60_000
