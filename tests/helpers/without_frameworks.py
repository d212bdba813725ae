"""A start of a program, in which no framework can be imported."""

from __future__ import annotations

FRAMEWORKS = ("torch", "torchvision", "timm", "torchao", "onnx", "onnxscript", "onnxruntime", "openvino", "nncf")

BLOCKER = f"""
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {FRAMEWORKS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocker())
"""
