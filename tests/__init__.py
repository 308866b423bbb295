"""Imported before all other tests, so that these modules are kept compiled, too."""

import os
import sys

# Where this variable is set, each process compiles the whole source and rewrites the assertions again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
