"""Changes: steps in series (`detect`), judged by the metric's direction (`judge`), and those `beyond_doubt`."""
