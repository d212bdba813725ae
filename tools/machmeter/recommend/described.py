"""A verdict as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from machmeter.recommend.candidates import TABLE, Candidate
from machmeter.recommend.choose import Excluded, Verdict
from machmeter.recommend.demands import Limit
from machmeter.tables import columns
from machmeter.text.numbers import throughput_digits


def as_text(verdict: Verdict, limits: Sequence[Limit], machine: str, program: str) -> str:
    """Return what is printed; `program` is the snippet, or the reason why there is none."""
    best = verdict.recommended
    asked = ", ".join(limit.option for limit in limits) or "no limits"
    lines = [f"{best.model} on {machine}, {verdict.considered} measured configurations, {asked}", ""]
    lines.append(f"recommended  {described(best)}")
    lines.append(f"runner-up    {described(verdict.runner_up) if verdict.runner_up else 'none: nothing else meets it'}")
    if best.launch:
        lines.append(f"launched by  {best.launch}")
    lines += ["", *(_left_out(item, verdict.considered) for item in verdict.excluded), *notes(verdict, limits)]
    return "\n".join(["\n".join(lines).rstrip(), "", program]).rstrip()


def described(candidate: Candidate) -> str:
    """Return a candidate's name and numbers, such as "openvino int8 batch 8: 219.3 images/s, p95 38.23 ms, ..."."""
    speed = candidate.images_per_second
    parts = [
        f"{speed:.{throughput_digits(speed)}f} images/s",
        f"{candidate.latency_is} {candidate.latency_ms:.2f} ms",
    ]
    parts += columns.in_words(candidate.facts, TABLE)
    return f"{candidate.name}: {', '.join(parts)}"


def _left_out(item: Excluded, considered: int) -> str:
    text = f"{item.limit.option} left out {item.count} of {considered}"
    if item.fastest is None:
        return text
    speed = item.fastest.images_per_second
    fastest = f"{item.fastest.name}, {speed:.{throughput_digits(speed)}f} images/s"
    if item.limit.kind != "throughput":
        fastest += f", {item.limit.described(item.fastest)}"
    return f"{text}; the fastest of them: {fastest}"


def notes(verdict: Verdict, limits: Sequence[Limit]) -> list[str]:
    """Return what a reader must know beside the numbers."""
    best, kinds = verdict.recommended, {limit.kind for limit in limits}
    found = []
    if "latency" in kinds and best.p95_ms is None:
        found.append(
            "note: the limit on latency was applied to p50, as there are too few samples for p95 (it needs 20)"
        )
    if "agreement" not in kinds and best.top1_agreement is not None and best.top1_agreement < 1.0:
        found.append(
            f"note: no limit on agreement was given; the recommended one gives the first class of fp32 eager on "
            f"{100 * best.top1_agreement:.1f} % of the images (--min-agreement 0.99 asks for more)"
        )
    return found


def as_json(
    verdict: Verdict, limits: Sequence[Limit], machine: str, program: str | None, reason: str | None
) -> dict[str, object]:
    """Return the verdict as plain data; `reason` says why there is no `program`."""
    return {
        "model": verdict.recommended.model,
        "machine": machine,
        "limits": [{"kind": limit.kind, "bound": limit.bound, "option": limit.option} for limit in limits],
        "considered": verdict.considered,
        "recommended": _plain(verdict.recommended),
        "runner_up": _plain(verdict.runner_up),
        "excluded": [
            {"limit": item.limit.kind, "count": item.count, "fastest": _plain(item.fastest)}
            for item in verdict.excluded
        ],
        "notes": [note.removeprefix("note: ") for note in notes(verdict, limits)],
        "snippet": program,
        "no_snippet": reason,
    }


def _plain(candidate: Candidate | None) -> dict[str, object] | None:
    if candidate is None:
        return None
    return {**columns.flat(candidate, TABLE), "latency_ms": candidate.latency_ms, "latency_is": candidate.latency_is}
