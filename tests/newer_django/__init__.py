"""The tests that compute, on SQLite, with the next series of Django: python -m tests.newer_django [pytest's
arguments].

It needs a Python that this Django runs on, which may be newer than that of `.venv`, and makes a virtual
environment of its own beside the other things that tests keep. Everything but Django has the version that is
pinned.
"""
