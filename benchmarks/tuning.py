from machmeter.measure.ladder_classes import ladder_classes

globals().update(ladder_classes(__name__))
