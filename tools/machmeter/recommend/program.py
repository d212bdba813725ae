"""The program that loads one measured configuration without machmeter."""

from __future__ import annotations

from machmeter import backends
from machmeter.errors import NoResults
from machmeter.machine import host
from machmeter.recommend.candidates import Candidate
from machmeter.recommend.described import described
from machmeter.workload import models
from machmeter.workload.artifacts import Store


def snippet(candidate: Candidate, store: Store) -> str:
    """Return the text of the program, with the artifact's path in `store` on top.

    Raises NoResults where the artifact that was measured is not in the store.
    """
    backend, model = backends.get(candidate.backend), models.get(candidate.model)
    kind, _, key = candidate.artifact.partition("/")
    artifact = store.find(kind, key) if key else None
    problem = None
    if artifact is None:
        problem = f"{store.root} has no {candidate.artifact}" if key else "its artifact is not on record"
    elif len(candidate.options) != len(backend.options):
        problem = f"{backend.name} has other options now"
    if artifact is None or problem:
        raise NoResults(
            f"no program can be written for {candidate.name}: {problem}; set MACHMETER_STORE to the store it "
            f"was measured with, or measure it again with 'machmeter bench --model {candidate.model} "
            f"--backend {candidate.backend} --batch {candidate.batch}'"
        )
    program = backend.snippet(
        model,
        artifact,
        candidate.precision,
        batch=candidate.batch,
        threads=candidate.threads or host.thread_budget(),
        **dict(zip(backend.options, candidate.options, strict=True)),
    )
    launched = f" Run it with: {candidate.launch}" if candidate.launch else ""
    measured = f", measured at commit {candidate.commit}" if candidate.commit else ""
    return f'"""{candidate.model}, {described(candidate)}{measured}.{launched}"""\n\n{program}'
