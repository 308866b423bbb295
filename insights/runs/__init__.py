"""Runs of the pipeline: who begins one, who works on it, how far it is, and what of it is loaded."""
