"""How pages look: their frame, amounts, texts, panels."""
