"""How Sphinx makes the site, from the folder that tests/docs/site.py lays out. It loads nothing from elsewhere."""

from sluice import __version__

project = "sluice"
author = "the authors of sluice"
release = __version__
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # of what stands for something left out
exclude_patterns = ["site"]
html_theme = "furo"
html_title = "sluice"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"top_of_page_buttons": []}
pygments_style = "friendly"
pygments_dark_style = "monokai"
