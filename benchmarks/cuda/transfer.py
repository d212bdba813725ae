from machmeter.suite import benchmark_classes

# Every model has images of the same size.
globals().update(benchmark_classes(__name__, "cuda.transfer", ["ResNet50"]))
