"""Why something with a fingerprint is not done."""


class FingerprintRefused(Exception):
    """The text is for the person who asked, in their language."""
