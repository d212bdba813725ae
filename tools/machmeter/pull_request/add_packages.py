"""Let the environment of the interpreter that runs this see the packages of another. It needs nothing but Python.

    python add_packages.py /path/of/the/other/site-packages

Its own packages come first. The whole of the other folder is added, with its own `.pth` files.
"""

import pathlib
import sys
import sysconfig

if __name__ == "__main__":
    text = f"import site; site.addsitedir({sys.argv[1]!r})\n"
    pathlib.Path(sysconfig.get_path("purelib"), "machmeter-pins.pth").write_text(text, encoding="utf-8")
