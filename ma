#!/usr/bin/env python3
"""Starts, stops and checks this installation: ./ma --help."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - an older Python is told so
    sys.exit("ma needs Python 3.11 or newer; this is " + sys.version.split()[0])

from deploy.cli import main

sys.exit(main())
