"""Draws charts as SVG on the server: attributes and classes only, so that the strict policy of the site takes
them. Knows nothing of where values come from. Pure, but for the reader's language."""
