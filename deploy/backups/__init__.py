"""Backups of an installation and what is restored from them: from a bare Python, for a machine that was lost
has nothing else."""
