from machmeter.tuning import ladder_classes

globals().update(ladder_classes(__name__))
