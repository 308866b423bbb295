"""Dead letters: index, console, replays, audit."""
