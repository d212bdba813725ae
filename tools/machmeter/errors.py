"""Every error a user can cause, with its exit code, and the two ways a cell can have no number.

Exit codes are part of the interface: scripts may rely on them. 0 is success, 1 is reserved for an
unexpected fault (a traceback: please report it) and 2 for a command line that cannot be parsed.
"""

from __future__ import annotations

import errno
from pathlib import Path


class MachmeterError(Exception):
    """A problem the user can solve: one line that says what to do, and an exit code."""

    exit_code = 1


class UnknownName(MachmeterError):
    """A model, backend or precision was named that does not exist."""

    exit_code = 3


class StoreUnwritable(MachmeterError):
    """The artifact store or the evidence folder cannot be written."""

    exit_code = 4


class DiskFull(MachmeterError):
    """There is no space left where an artifact or a record must be written."""

    exit_code = 5


class NothingSelected(MachmeterError):
    """A filter (a regular expression, a batch, a model) matches no benchmark."""

    exit_code = 6


class WeightsUnavailable(MachmeterError):
    """The pretrained weights that were asked for cannot be had on this machine."""

    exit_code = 7


class NoResults(MachmeterError):
    """There is nothing to show yet."""

    exit_code = 8


class BadSetting(MachmeterError):
    """An environment variable or a configuration file has a value that cannot be used."""

    exit_code = 9


class RunFailed(MachmeterError):
    """asv itself could not run, or every cell failed that could be measured here (not: some cells failed)."""

    exit_code = 10


class NothingMeets(MachmeterError):
    """No measured configuration meets the limits that were asked for."""

    exit_code = 11


class StackUnpinned(MachmeterError):
    """A stack's requirements file has a line that does not say one exact version."""

    exit_code = 12


class VersionUnknown(MachmeterError):
    """A version of a library was asked for that the package index does not have."""

    exit_code = 13


class NoDevice(MachmeterError):
    """A device was asked for that this machine does not have."""

    exit_code = 47


class SiteUnbuildable(MachmeterError):
    """The site cannot be built: templates are missing, or the output folder holds something else."""

    exit_code = 20


class SideUnknown(MachmeterError):
    """What shall be compared is not among the results, or could be several of them."""

    exit_code = 21


class MeasurementsUnreadable(MachmeterError):
    """A document of measurements is too large, no JSON, or of another shape."""

    exit_code = 22


class CommitUnknown(MachmeterError):
    """What should be compared is no commit of this repository, or there is no repository."""

    exit_code = 24


class NoMergeBase(MachmeterError):
    """The commits to compare have no commit in common that this clone knows."""

    exit_code = 25


class Uncommitted(MachmeterError):
    """There are changes that no commit has, and commits are what is compared."""

    exit_code = 26


class OutputTaken(MachmeterError):
    """The output folder holds another comparison, or something that cannot be read."""

    exit_code = 27


class BadBudget(MachmeterError):
    """A time to spend was given that cannot be read."""

    exit_code = 28


class Busy(MachmeterError):
    """Another comparison is being measured here: both would disturb each other."""

    exit_code = 29


class ArtifactUnusable(MachmeterError):
    """Measurements that came from elsewhere are missing, too large, or not what they should be."""

    exit_code = 30


class NoRights(MachmeterError):
    """GitHub does not let this token do what was asked for."""

    exit_code = 31


class NotOnGitHub(MachmeterError):
    """The repository, pull request or issue does not exist on GitHub, or the token cannot see it."""

    exit_code = 32


class RateLimited(MachmeterError):
    """GitHub asks to wait longer than is waited here."""

    exit_code = 33


class GitHubUnreachable(MachmeterError):
    """GitHub does not answer, or only with errors, after several attempts."""

    exit_code = 34


class NotAccepted(MachmeterError):
    """The request is not one that is carried out: a closed pull request, a foreign commit, a user who may not write."""

    exit_code = 35


class ResultsUnfit(MachmeterError):
    """A file of results or evidence is damaged, or is not what its name says: nothing was pushed."""

    exit_code = 36


class BranchDamaged(MachmeterError):
    """The results branch, or a folder with its files, has files that are damaged, changed or gone."""

    exit_code = 37


class RemoteUnreachable(MachmeterError):
    """The remote does not exist, does not answer, or failed half-way."""

    exit_code = 38


class RemoteRefused(MachmeterError):
    """The remote answered and refused: a login that has no rights, or a rule or a hook there."""

    exit_code = 39


class NotResultsBranch(MachmeterError):
    """The branch exists and was not made by `machmeter results push`."""

    exit_code = 40


class BranchBusy(MachmeterError):
    """Others pushed first each time, as often as was tried."""

    exit_code = 41


class NotReady(MachmeterError):
    """The machine would not measure steadily, and `machmeter doctor --strict` was asked."""

    exit_code = 42


class RunnersInvalid(MachmeterError):
    """The list of machines that measure cannot be used."""

    exit_code = 43


class Interrupted(Exception):
    """The user, or whoever runs this, asked a command to end that can go on later; it says what is kept."""


class Unsupported(NotImplementedError):
    """The cell cannot exist here: a missing package, CPU feature or combination. asv shows "n/a".

    It derives from NotImplementedError because that, raised in a `setup`, is how asv is told to skip.
    """


class CellFailed(RuntimeError):
    """The cell ran and its number must not be used: a wrong label, a wrong answer, an impossible time."""


def from_os_error(error: OSError, where: Path, what: str, setting: str | None = "MACHMETER_STORE") -> MachmeterError:
    """Turn an operating-system error met while writing `what` under `where` into one that says what to do.

    `setting` is the variable that moves it elsewhere, if there is one.
    """
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(
            f"no space left on the disk while writing {what} under {where}: free some space"
            + (f", or set {setting} to a folder on another disk" if setting else "")
        )
    return StoreUnwritable(
        f"cannot write {what} under {where} ({error.strerror or error}): make it writable"
        + (f", or set {setting} to a folder you can write" if setting else "")
    )
