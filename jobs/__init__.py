"""The pipeline, its commands and everything else that knows Spark, files or the terminal."""

import sys
from types import SimpleNamespace

# PyArrow takes the help of its functions apart when it is imported, for the help of others: that takes 20 ms of each process.
sys.modules.setdefault("pyarrow.vendored.docscrape", SimpleNamespace(NumpyDocString=lambda _: {"Parameters": []}))  # type: ignore[arg-type]
