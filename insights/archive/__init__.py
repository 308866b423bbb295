"""The archive, as the MA sees it: which rows belong to it, which blocks are planned, what of them is safe
there.

It is written and read by `pipeline/`, a program of its own; what both have in common is the plan and the
report.
"""
