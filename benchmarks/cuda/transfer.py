from machmeter.suite import benchmark_classes
from machmeter.workload.models import get

# Every model has images of the same size.
globals().update(benchmark_classes(__name__, "cuda.transfer", [get("ResNet50")]))
