"""How much memory a process held at most."""

from resource import struct_rusage


def peak_bytes() -> int:
    """Of this process, 0 where the kernel does not say. Not `ru_maxrss`: that begins with what the parent
    held."""
    try:
        with open("/proc/self/status", "rb") as status:
            for line in status:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return 0


def peak_of(usage: struct_rusage) -> int:
    """Of a child that has ended; 0 where it may be what it had from this process, which started it."""
    peak = int(usage.ru_maxrss) * 1024
    return peak if peak > peak_bytes() else 0
