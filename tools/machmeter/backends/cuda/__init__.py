"""The runtimes on an NVIDIA GPU, one module each. `_session.py` is what they share: when a call is over."""

BATCHES = (1, 8, 32, 64, 128)  # what is measured on a GPU, whatever the model is measured at on a CPU
