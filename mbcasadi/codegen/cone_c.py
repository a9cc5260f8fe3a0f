"""The C of quadratic cones in the solver of a law: what its templates have in addition."""

from collections.abc import Mapping

from mbcasadi.codegen.precision import Real, same_power
from mbcasadi.codegen.text import number, template
from mbcasadi.description.qp_stages import (
    APEX,
    CONE_ROWS,
    LEAST_COSINE,
    LEAST_COST,
    LEAST_FORCE,
    LEAST_RADIUS,
    NEWTON_GAIN,
    NEWTON_PASSES,
    NEWTON_STALLS,
    NEWTON_STEPS,
)

PLANES = 4
"""Tangent planes of a cone for which there is memory: three that are active, one that enters."""

MEMBERS = """\
  ldp_real of_cone[@cone_rows@ * @n_array@], gram[6 * @cones_number@]; /* rows of cones, products */
  ldp_real plane[LDP_PLANES * @n_array@], cosine[LDP_PLANES], sine[LDP_PLANES];
  ldp_real turning[LDP_CONES * @n_array@], before[@n_array@]; /* rows along which planes turn; x */
  ldp_real saved_cosine[@n_array@], saved_sine[@n_array@];
  int saved_row[@n_array@], saved_side[@n_array@], saved;
"""

POSE = """\
  if ((posed = ldp_pose_cones(p, &distance2)) != 1) return posed;
"""

WRITE = """\
  if (row >= LDP_M) {
    ldp_write_plane(p, row, size);
    return;
  }
"""

ROW = """\
  if (row >= LDP_M) {
    memcpy(numbers, p->plane + (row - LDP_M) * LDP_N, sizeof(ldp_real) * LDP_N);
    return;
  }
"""

RESTS = """\
  for (i = LDP_LINEAR; i < LDP_M; i += 3)
    if (!(ldp_hypot(p->lba[i + 1], p->lba[i + 2]) <= -p->lba[i])) return 0;
"""

WITHOUT = {"linear": "LDP_M"} | dict.fromkeys(
    ("cone_head", "cone_members", "cones", "cone_pose", "cone_warm", "cone_read", "plane_write"), ""
)
"""Values of the solver's template for a problem without cones."""


def plane_rows(cones: int) -> int:
    """Return the number of rows for tangent planes."""
    return PLANES * cones


def rest_values(cones: int) -> dict[str, str]:
    """Return the values of the template that asks whether x = 0 meets all rows."""
    return {"linear": "LDP_LINEAR", "cones": RESTS} if cones else {"linear": "LDP_M", "cones": ""}


def cone_doubles(cones: int, n: int) -> int:
    """Return the memory of the cones in the solver, beside that of `plane_rows`."""
    return cones * (CONE_ROWS * n + 6 + PLANES * (n + 2) + n) + (4 * n + 1 if cones else 0)


def cone_values(cones: int, values: Mapping[str, str | int]) -> dict[str, str | int]:
    """Return the values of the solver's template for some cones.

    Args:
        cones: their number, not zero.
        values: those of the other placeholders.
    """
    real: Real = "float" if values["real"] == "float" else "double"
    own: dict[str, str | int] = {
        **values,
        "cones_number": cones,
        "newton_passes": NEWTON_PASSES,
        "newton_gain": number(same_power(NEWTON_GAIN, real), real),
        "newton_stalls": NEWTON_STALLS,
        "least_cosine": number(LEAST_COSINE, real),
        "newton_steps": NEWTON_STEPS,
        "least_force": number(LEAST_FORCE, real),
        "least_cost": number(LEAST_COST, real),
        "least_radius": number(LEAST_RADIUS, real),
        "turn": number(0.86602540378443865, real),
        "apex": APEX,
    }
    own["cone_newton"] = template("cone_newton.c.in", own)
    members = MEMBERS.replace("@cone_rows@", str(CONE_ROWS * cones))
    for name in ("cones_number", "n_array"):
        members = members.replace(f"@{name}@", str(own[name]))
    return {
        "linear": "LDP_LINEAR",
        "cone_head": template("cone_head.c.in", own),
        "cone_members": members,
        "cones": template("cones.c.in", own) + "\n",
        "cone_pose": POSE,
        "cone_warm": "  ldp_warm_cones(p);\n",
        "cone_read": "  ldp_read_cones(p);\n",
        "plane_write": WRITE,
        "iterate": template("cone_iterate.c.in", own),
    }
