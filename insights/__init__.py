"""The data pipeline as the site runs it: its runs, the archive that it writes, and what it found."""
