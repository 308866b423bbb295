#!/usr/bin/env python3
"""Django's command line. What changes or follows a
database refuses one of another version; `history` only asks."""

import os
import sys

from console import old_database

ASKING = ("migrate", "prepare", "history", "follow_dead_letters")


def main() -> None:
    command = "".join(sys.argv[1:2])
    if command in ASKING and (text := old_database.refusal(os.environ)):
        sys.exit(text)
    if command == "history":
        return
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ma_site.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
