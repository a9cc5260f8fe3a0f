"""The page as Markdown: one table of corrections and one of confirmations for each paper."""

from .finding import Confirmation, Finding
from .papers import PAPERS, Paper

COMMAND = "cd tests && python -m errata.make_errata"

INTRO = f"""\
# Errata of the source papers

The formulations and control laws of this package come from five texts. Some of their equations
do not hold as printed: signs, missing transposes, conditions that are too weak. The package
implements the corrected form, and the docstring of each formula says so. This page is for
readers who compare the code with the papers.

It is written by `{COMMAND}`, which evaluates every row in about ten seconds; edit
`tests/errata`, not this page.
"""

SIGNS = """\
**Signs.** A05 and A10 put the multipliers on the other side, `M a + h = f - Aᵀ λ`. A16 writes
a constraint force `+ f_c`, L15 `+ Qᶜ`, S20 `+ Fᵀ lam`. This package writes
`M a + h = f + Aᵀ lam`, as MuJoCo and S20 do.

`P` is the projector on null(A), `Q = I - P`, `C` the Coriolis matrix, `W` a root factor
`M = W Wᵀ`, `⁺` the Moore-Penrose inverse. A dot is a rate along the motion.

**Numbers.** Each row states what is measured, then the number for the statement as printed and
for the corrected one. An error is ‖value - reference‖ / max(1, ‖reference‖). Data are random with
fixed seeds: five coordinates and four rows of rank two, one of them zero and one repeated, unless
a row says otherwise. The reference motion solves the KKT equations by least squares; no formula
of the papers and no code of the package enters it. Derivatives are six-point differences, so
that 1e-11 is rounding. Numbers at that level vary with the machine.
"""

CORRECTIONS = ("where", "as printed", "what holds", "measured", "printed", "corrected")
CONFIRMATIONS = ("equations", "holds as printed", "largest error")


def number(x: float) -> str:
    """Return a number as the page shows it."""
    if x == 0:
        return "0"
    return f"{x:.0e}" if abs(x) < 1e-3 else f"{x:.3g}"


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table; bars inside cells are escaped."""
    body = [head, ("---",) * len(head), *(tuple(c.replace("|", r"\|") for c in r) for r in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in body)


def correction_rows(findings: list[Finding]) -> list[tuple[str, ...]]:
    """Return the cells of the corrections of one paper."""
    return [
        (f.equation, f.printed, f.correct, f.note, number(f.printed_error), number(f.correct_error))
        for f in findings
    ]


def confirmation_rows(found: list[Confirmation]) -> list[tuple[str, ...]]:
    """Return the cells of the confirmations of one paper."""
    return [(c.equations, c.statement, number(c.error)) for c in found]


def section(paper: Paper) -> str:
    """Return one paper's section; this evaluates its checks."""
    parts = [
        f"## {paper.tag}: {paper.subject}",
        paper.remark,
        paper.figures() if paper.figures else "",
        table(CORRECTIONS, correction_rows([check() for check in paper.checks])),
        f"Equations of {paper.tag} that hold as printed, evaluated by the script:",
        table(CONFIRMATIONS, confirmation_rows([confirm() for confirm in paper.confirms])),
        f"Read and found right, not evaluated: {paper.read}.",
    ]
    return "\n\n".join(part for part in parts if part)


def page() -> str:
    """Return the whole page."""
    tags = table(("tag", "text"), [(p.tag, p.source) for p in PAPERS])
    return "\n\n".join([INTRO.strip(), tags, SIGNS.strip(), *(section(p) for p in PAPERS)]) + "\n"
