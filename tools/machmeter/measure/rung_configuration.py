"""What a rung of the ladder means for a model: the configuration that is started and measured."""

from __future__ import annotations

from collections.abc import Mapping

from machmeter import backends
from machmeter.errors import BadSetting
from machmeter.measure.instances import SECONDS, Configuration
from machmeter.workload.cells import Cell
from machmeter.workload.launch import Launch
from machmeter.workload.precision import DEFAULT
from machmeter.workload.rungs import LAUNCH_KEYS, Rung, settings


def configuration(rung: Rung, rungs: Mapping[str, Rung], model: str) -> Configuration:
    """Return what `rung` means for `model`. Raises UnknownName or BadSetting where that cannot be."""
    found = settings(rung, rungs)
    backend = backends.get(found.backend)
    precision, options = found.precision, found.options or {}
    chooses = getattr(backend, "chooses_precision", False)
    known = (*backend.precisions, DEFAULT) if chooses else backend.precisions
    if precision not in known:
        raise BadSetting(
            f"rung {rung.name!r}: {backend.name} has no precision {precision!r}, it has {', '.join(known)}"
        )
    if set(options) != set(backend.options):
        raise BadSetting(
            f"rung {rung.name!r}: {backend.name} takes {_listed(backend.options)}, and is given {_listed(options)}"
        )
    for name, value in options.items():
        if value not in backend.options[name]:
            raise BadSetting(
                f"rung {rung.name!r}: {name} is {value!r}, {backend.name} has {', '.join(backend.options[name])}"
            )
    try:
        launch = Launch(**{name: value for name in LAUNCH_KEYS if (value := getattr(found, name)) is not None})
    except BadSetting as error:
        raise BadSetting(f"rung {rung.name!r}: {error}") from error
    return Configuration(
        backend=backend,
        cell=Cell(
            device=backend.device,
            backend=backend.name,
            model=model,
            precision=precision,
            batch=found.batch,
            options={name: options[name] for name in backend.options},
        ),
        launch=launch,
        seconds=SECONDS if found.seconds is None else found.seconds,
    )


def _listed(options: Mapping[str, object]) -> str:
    return f"the option {', '.join(options)}" if options else "no option"
