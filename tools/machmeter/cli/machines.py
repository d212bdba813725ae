"""Commands about the machines that measure: doctor, and runners check, matrix, name, measure."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from machmeter import asv_names, doctor
from machmeter.cli.common import PROJECT, say
from machmeter.errors import BadSetting, NotReady
from machmeter.runners import jobs, machine_list

commands = typer.Typer()
runner_commands = typer.Typer(
    help="The machines that measure, as .github/runners.toml lists them.", no_args_is_help=True
)

NAME = Annotated[str, typer.Argument(help="A machine of .github/runners.toml.")]


@commands.command("doctor")
def doctor_command(
    runner: Annotated[
        str, typer.Option("--runner", help="A machine of .github/runners.toml: its threads, and what it accepts.")
    ] = "",
    accept: Annotated[list[str] | None, typer.Option("--accept", help="A check that need not be met.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail where anything is to be changed or unknown.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the same as JSON.")] = False,
    project: PROJECT = Path(),
) -> None:
    """Check whether this machine measures steadily: what to change, how, and why."""
    project = project.resolve()
    expected = machine_list.get(project, runner) if runner else None
    accepted = {*(accept or []), *(expected.accept if expected else ())}
    if unknown := sorted(accepted - set(doctor.NAMES)):
        raise BadSetting(f"--accept is {unknown[0]!r}, which is no check: they are {', '.join(doctor.NAMES)}")
    findings = doctor.examine(
        doctor.look(project), threads=expected.threads if expected else None, accepted=frozenset(accepted)
    )
    width = shutil.get_terminal_size(fallback=(0, 0)).columns  # COLUMNS, else the terminal's; none in a file
    if as_json:
        print(json.dumps(doctor.as_json(findings), indent=2, allow_nan=False))
    else:
        print(doctor.as_text(findings, width))
    open_ones = [item.check for item in findings if item.state in doctor.OPEN]
    if strict and open_ones:
        raise NotReady(f"this machine is not ready to measure: {', '.join(open_ones)} (what to do is above)")


@runner_commands.command("check")
def check_command(project: PROJECT = Path()) -> None:
    """Check the list of machines: names, labels, stacks, libraries."""
    for item in machine_list.check(project.resolve()):
        print(f"{item.name:<12} {', '.join(item.stacks):<16} {', '.join(item.workflows):<36} {' '.join(item.labels)}")


@runner_commands.command("matrix")
def matrix_command(
    workflow: Annotated[str, typer.Option("--for", help="benchmark, versions or benchmark-pr.")],
    project: PROJECT = Path(),
) -> None:
    """Print the jobs of a workflow as JSON, and hand them to GitHub Actions as the outputs `matrix` and `any`."""
    wanted = next((name for name in machine_list.WORKFLOWS if name == workflow), None)
    if wanted is None:
        raise typer.BadParameter(f"{workflow!r}: choose from {', '.join(machine_list.WORKFLOWS)}")
    jobs = machine_list.matrix(machine_list.check(project.resolve()), wanted)
    text = json.dumps(jobs, allow_nan=False)
    print(text)
    if output := os.environ.get("GITHUB_OUTPUT"):
        with Path(output).open("a", encoding="utf-8") as file:
            file.write(f"matrix={text}\nany={'true' if jobs['include'] else 'false'}\n")


@runner_commands.command("name")
def name_command(name: NAME, project: PROJECT = Path()) -> None:
    """Let asv file the results of this machine under its name in the list."""
    project = project.resolve()
    machine_list.name_machine(project, machine_list.get(project, name).name)
    print(f"results of this machine are filed under {name}")


@runner_commands.command("measure")
def measure_command(
    name: NAME,
    commits: Annotated[
        str, typer.Option("--commits", help="Separated by spaces. Default: those since this machine's last results.")
    ] = "",
    benchmarks: Annotated[str, typer.Option("--benchmarks", "-b", help="Default: those of the list.")] = "",
    most: Annotated[int, typer.Option("--most", min=1, help="At most so many commits.")] = 20,
    known: Annotated[
        Path | None, typer.Option("--known", help="What 'results pull --output' wrote. Default: the project's own.")
    ] = None,
    project: PROJECT = Path(),
) -> None:
    """Measure new commits with every stack of this machine; HEAD once more where there are none."""
    project = project.resolve()
    results = known / "results" if known else asv_names.results_folder(project)
    if not jobs.measure(project, results, machine_list.get(project, name), commits.split(), benchmarks, most, say):
        print("some benchmarks failed: 'machmeter show' says why")


@runner_commands.command("compare")
def compare_command(
    name: NAME,
    base: Annotated[str, typer.Argument(help="What the change is for.")],
    head: Annotated[str, typer.Argument(help="The change, as a commit.")],
    benchmarks: Annotated[str, typer.Option("--benchmarks", "-b", help="Default: those of the list.")] = "",
    code: Annotated[Path, typer.Option("--code", help="The clone that has the commits.")] = Path(),
    output: Annotated[Path, typer.Option("--output", help="A folder for each stack's measurements.")] = Path(
        "measured"
    ),
    project: PROJECT = Path(),
) -> None:
    """Measure a change against its base with every stack of this machine. What was measured is no error."""
    project = project.resolve()
    jobs.compare(
        project, code.resolve(), machine_list.get(project, name), base, head, benchmarks, output.resolve(), say
    )
