class Problem(Exception):
    """What a person must mend before `ma` can go on. Its text is all they see: one line, what and what to
    do."""
