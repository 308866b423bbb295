"""Dead letters: their index, the console, and giving them back."""
