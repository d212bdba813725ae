"""Changes: steps in series (`detect`), judged by the metric's direction (`judge`), and those beyond doubt (`alerts`).

`simulate` makes the histories that all this is tried on.
"""
