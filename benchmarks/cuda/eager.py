from machmeter.suite import benchmark_classes

globals().update(benchmark_classes(__name__, "cuda.eager"))
