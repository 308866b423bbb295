"""Would the tests notice? Changes one detail of a pure rule at a time and expects that a test of the rule
fails.

`python -m tests.mutation` runs every rule of rules.py, `--changed` only those whose source or tests differ
from the last complete run, `--minutes N` stops after N minutes. A survivor is killed by a new test, or named
in equivalent.py.

Tried before writing this: mutmut 3.8.1 changes only functions without a decorator (staticmethod and
classmethod aside). It leaves constants, fields of a dataclass and properties alone, and it runs in a copy of
the project. cosmic-ray 8.7.0 writes each mutant into the source file and starts the test command anew: 3
seconds of imports for each. SIGTERM or SIGKILL leaves the changed file behind. Here no file is written: a
child by fork(2) gets the changed code into what its parent has imported already, in a few hundredths of a
second.
"""
