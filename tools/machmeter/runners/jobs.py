"""What a machine of the list does in a workflow: measure commits, compare two."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from machmeter import asv_names, git
from machmeter.errors import BadSetting, MachmeterError, RunFailed
from machmeter.runners.machine_list import Runner, check_name
from machmeter.running import stacks
from machmeter.running.waiting import Say
from machmeter.text import durations

ROUNDS = 8  # at most so many processes for each side: docs/comparisons.md says what they can see


def pending(project: Path, results: Path, runner: Runner, stack: str, most: int) -> list[str]:
    """Return the commits that this machine should measure with `stack`, the newest first.

    `results` is asv's folder with what was measured so far; the names of its files are enough. Pending are the commits
    of the branch since the newest one that this machine has results of, at most `most`; HEAD once more where there are
    none (a second run confirms or clears a suspicion), and HEAD alone on a machine that has measured nothing.
    Raises BadSetting.
    """
    commits = (git.ask(project, "rev-list", "--first-parent", f"--max-count={most}", "HEAD") or "").split()
    if not commits:
        raise BadSetting(f"git cannot list the commits of {project}: it is no repository with commits")
    # On the branch `results` each run has a file of its own: its name ends in the hash of its content.
    ending = re.compile(rf"-STACK{re.escape(stack)}(\.[0-9a-f]+)?\.json$")
    measured = {path.name[:8] for path in (results / runner.name).glob("*.json") if ending.search(path.name)}
    if not measured:
        return commits[:1]
    new = []
    for commit in commits:
        if commit[:8] in measured:
            break
        new.append(commit)
    return new or commits[:1]


def measure(
    project: Path, results: Path, runner: Runner, commits: Sequence[str], pattern: str, most: int, say: Say
) -> bool:
    """Measure `commits`, those that are pending where none is named, with every stack of `runner`.

    `results` is asv's folder with what was measured so far.

    Returns whether every benchmark succeeded. A stack that asv cannot run does not keep the others from being
    measured. Raises BadSetting or RunFailed at the end where there was one.
    """
    check_name(runner.name)
    failed, complete = [], True
    for stack in runner.stacks:
        chosen = [_commit(project, commit) for commit in commits] or pending(project, results, runner, stack, most)
        say(f"{runner.name}, stack {stack}: {', '.join(commit[:8] for commit in chosen)}")
        listed = (project / ".asv" / f"commits-{stack}.txt").resolve()
        listed.parent.mkdir(exist_ok=True)
        listed.write_text("\n".join(chosen) + "\n", encoding="utf-8")
        try:
            complete &= stacks.run(project, stack, [f"HASHFILE:{listed}", "-b", pattern or runner.benchmarks])
        except RunFailed as error:
            failed.append(str(error))
    if failed:
        raise RunFailed("; ".join(failed))
    return complete


def compare(
    project: Path, code: Path, runner: Runner, base: str, head: str, pattern: str, output: Path, say: Say
) -> None:
    """Measure `head` against `base` with every stack of `runner`, each into a folder of its own under `output`.

    `code` is the clone with the commits, which is not trusted; the list of machines is that of `project`. A stack
    that cannot be measured does not keep the others from it. Raises RunFailed at the end where there was one.
    """
    from machmeter.pull_request import command

    check_name(runner.name)
    failed = []
    for stack in runner.stacks:
        say(f"{runner.name}, stack {stack}")
        try:
            command.run(
                code,
                base,
                head,
                patterns=[pattern or runner.benchmarks],
                rounds=ROUNDS,
                seconds=durations.parse(runner.budget),
                output=output / stack,
                stack=stack,
                say=say,
            )
        except MachmeterError as error:
            failed.append(f"{stack}: {error}")
    if failed:
        raise RunFailed("; ".join(failed))


def _commit(project: Path, name: str) -> str:
    commit = asv_names.commit_hash(project, name)
    if commit == "unversioned":
        raise BadSetting(f"no commit {name!r} in {project}: name one that git knows")
    return commit
