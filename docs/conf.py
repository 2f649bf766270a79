"""Settings of Sphinx; `make docs` builds the pages in docs/_build/html."""

from __future__ import annotations

import os
import re
from pathlib import Path

import temporalnmf

os.environ.setdefault("MPLBACKEND", "Agg")

project = "temporalnmf"
author = "The temporalnmf developers"
copyright = "The temporalnmf developers"
version = release = temporalnmf.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates", "gallery"]
templates_path = ["_templates"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
highlight_language = "text"
default_role = "literal"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

toc_object_entries_show_parents = "hide"
autosummary_generate = True
autodoc_typehints = "none"  # the sections of the docstrings say it in words
autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    "exclude-members": (
        "set_fit_request, set_transform_request, set_score_request, set_split_request, theta"
    ),
}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"/\d_",
    "ignore_pattern": r"__init__\.py",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("matplotlib",),
    "capture_repr": ("_repr_html_",),  # tables; numbers and text are printed
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1000,
    "nested_sections": False,
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "temporalnmf"
html_static_path = ["_static"]
html_css_files = ["temporalnmf.css"]
html_show_sourcelink = False
html_sidebars = {"index": [], "quickstart": []}
html_theme_options = {
    "navigation_with_keys": True,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "logo": {"text": "temporalnmf"},
}


_LINK = re.compile(r"\[([^\]]+)\]\(([\w./-]+)\)")


def name_outside_files(app, docname, source):
    """A link to a file outside docs, which a built page cannot reach, becomes the file's name."""
    here = Path(app.srcdir, docname).parent
    root = Path(app.srcdir).parent

    def named(link):
        target = (here / link[2]).resolve()
        inside = target.is_relative_to(app.srcdir) or not target.is_relative_to(root)
        return link[0] if inside else f"{link[1]} (`{target.relative_to(root)}`)"

    source[0] = _LINK.sub(named, source[0])


def setup(app):
    app.connect("source-read", name_outside_files)
