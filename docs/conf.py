"""Settings of Sphinx for `./ma docs`. Nothing of the built site comes from another host."""

from contract import __version__

project = "MA and KMA"
release = version = __version__
html_title = f"{project} {release}"
language = "en"

extensions = ["myst_parser"]
myst_heading_anchors = 6
nitpicky = True

html_theme = "furo"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
# The search is Sphinx's own: an index in a file, read by the browser.
html_search_language = "en"
