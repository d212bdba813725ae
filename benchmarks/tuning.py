from machmeter.suite import ladder_classes

globals().update(ladder_classes(__name__))
