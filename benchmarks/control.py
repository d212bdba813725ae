"""Controls: what the harness costs per call, whether the machine is as fast as it was, and what it can do at best."""

import numpy as np
from threadpoolctl import threadpool_limits

from machmeter.suite import null_class, peak_class, thread_budget

# One call of a backend that computes nothing: the overhead of the harness.
Null = null_class(__name__)

# The highest rates of this machine, of which the table shows each cell's share.
MachinePeak = peak_class(__name__)


class Machine:
    """A fixed amount of work that no recipe can change: where it is slow, the machine is."""

    version = "1"
    number = 1
    repeat = (5, 100, 3.0)
    rounds = 1

    def setup(self):
        threadpool_limits(thread_budget(), user_api="blas")
        random = np.random.default_rng(0)
        self.left, self.right = (random.standard_normal((2048, 2048), dtype=np.float32) for _ in range(2))
        self.product = np.empty_like(self.left)

    def time_matrix_product(self):
        np.matmul(self.left, self.right, out=self.product)
