"""What a process of the web holds for its clients, and how long; docs/operations.md tells it in words."""

from ma_site.outgoing import KB, MB

HEAD_MOST = 64 * KB
HEAD_SECONDS = BODY_SECONDS = 10.0
# What is longer than a small body comes from a known sender, at this rate at least (bytes a second).
SLOWEST_SENDER = 256 * KB
LARGE_AT_ONCE = 4
IN_LINE_SECONDS = 60.0
# Kept of all bodies that are not whole yet.
BODIES_HELD = 128 * MB
ANSWER_SECONDS, SLOWEST_READER = 10.0, 32 * KB
# Kept of all answers whose threads are gone.
ANSWERS_HELD = 64 * MB
# A sender that is refused reads its answer only when it has sent: as much is thrown away.
LINGER_SECONDS, REFUSED_SECONDS, LINGER_MOST = 2.0, 10.0, 64 * MB
SWEEP_SECONDS = 0.25
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
