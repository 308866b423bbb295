"""Describes how pages look: their frame, amounts, texts, panels."""
