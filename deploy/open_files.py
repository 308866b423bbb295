"""How many files a process may open: supervisord and the broker refuse to start with what some shells grant,
and the broker says of it only that a class is missing."""

import resource

from deploy.problem import Problem

# What supervisord asks for.
NEEDED = 1024


def allow() -> None:
    """Raises the limit of this process and of all that it starts, where it may. Raises Problem where it may
    not."""
    granted, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if granted == resource.RLIM_INFINITY or granted >= NEEDED:
        return
    if most != resource.RLIM_INFINITY and most < NEEDED:
        raise Problem(
            f"a process may open {most} files at once here (ulimit -Hn), and {NEEDED} are needed: raise "
            f"`nofile` of "
            "this user in /etc/security/limits.conf, sign in again, then ./ma up"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (NEEDED, most))
