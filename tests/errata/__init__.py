"""Evidence for the errata of the source papers: one function for each statement.

`papers` lists the checks in the order of the texts, `page` writes them as Markdown. NumPy and
SciPy only: the checks are about the papers, and share no code with the package.
"""
