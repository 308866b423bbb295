"""Every reason that rows of this app keep. `grep` for a code finds where it is given."""
