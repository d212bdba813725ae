"""The git branch that carries results between machines: append-only, one file for each run, never overwritten.

`layout` names its files, `checks` says which are fit, `collect` finds those of this machine, `repository` speaks to
git; `push`, `pull`, `verify` and `budget` are the commands. docs/results-branch.md has the format and its reasons.
"""
