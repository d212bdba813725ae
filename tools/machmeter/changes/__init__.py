"""Changes: steps in series, judged by the metric's direction (`detect`, `judge`, `alerts`), and how they are tried (`simulate`)."""
