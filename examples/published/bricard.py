"""The rectangular Bricard mechanism: five rods and six hinges that move although they should not.

Counting freedoms gives none. The last hinge is closed by two point connections, six rows of
rank four, so two rows repeat others at every pose.

Source: problem A04 of the benchmark library of the IFToMM Technical Committee for Multibody
Dynamics (rods of 1 m, 1 kg, 0.1 m square; gravity 9.81 N/kg along -y; from rest; 10 s), after
M. González, D. Dopico, U. Lugrís and J. Cuadrado, *A benchmarking system for MBS simulation
software*, Multibody System Dynamics 16 (2006) 179-190.
Reference: the energy is constant; the published curve of point P3, which the OpenSim benchmark
collection (Tagliapietra et al., 2015) plots. Read from it: when P3 passes x = 0, and the ends of
its path. One pixel of the plot is 0.016 s and 0.004 m.

You will see the energy error and these times.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

import mbcasadi as mb

DURATION = 10.0  # s
START = (1.0, -1.0, 0.0)  # m, P3
CROSSINGS, READ_TO = (1.242, 3.734, 6.234, 8.726), 0.016  # s, P3 at x = 0 on the plot
HIGHEST_Y, LOWEST_Z, PLACE_READ_TO = -0.865, -0.5, 0.01  # m, of P3 on the plot
RODS = (  # direction, where its near hinge turns
    ((1, 0, 0), (0, 1, 0)),
    ((0, -1, 0), (0, 0, 1)),
    ((0, 0, 1), (1, 0, 0)),
    ((-1, 0, 0), (0, 1, 0)),
    ((0, 1, 0), (0, 0, 1)),
)


def xml() -> str:
    """Return the mechanism as MJCF, authored at its start, where every angle is zero."""
    bodies, place = "", (0, 0, 0)
    for i, (along, axis) in enumerate(RODS, 1):
        half, middle = [0.5 if x else 0.05 for x in along], [x / 2 for x in along]
        bodies += (
            f'<body name="rod{i}" pos="{_text(place)}">'
            f'<joint name="hinge{i}" axis="{_text(axis)}"/>'
            f'<geom type="box" size="{_text(half)}" pos="{_text(middle)}" mass="1"/>'
            f'<site name="P{i + 1}" pos="{_text(along)}"/>'
        )
        place = along
    bodies += "</body>" * len(RODS)
    pins = "".join(  # two points on the axis of the last hinge, which is along x
        f'<connect body1="rod5" anchor="{side} 1 0"/>' for side in (-0.1, 0.1)
    )
    return (
        f'<mujoco model="rectangular_bricard"><option gravity="0 -9.81 0"/>'
        f"<worldbody>{bodies}</worldbody><equality>{pins}</equality></mujoco>"
    )


def _text(values: Iterable[float]) -> str:
    return " ".join(str(x) for x in values)


def simulate(rtol: float = 1e-10, formulation: str = "projection") -> mb.Trajectory:
    """Return the motion from rest over 10 s."""
    system = mb.read_mjcf(xml())
    return mb.simulate(
        system, np.zeros(5), np.zeros(5), DURATION, formulation, rtol=rtol, atol=rtol / 10,
        times=np.linspace(0, DURATION, 2001),
    )  # fmt: skip


def path_of_p3(trajectory: mb.Trajectory) -> np.ndarray:
    """Return P3 at every sample, (nt, 3), m."""
    pose = mb.read_mjcf(xml()).frame("P3").pose
    return np.array(pose.map(len(trajectory.t))(trajectory.q.T)[0]).T


def crossings(trajectory: mb.Trajectory) -> np.ndarray:
    """Return the times, s, at which P3 passes x = 0."""
    t, x = trajectory.t, path_of_p3(trajectory)[:, 0]
    i = np.flatnonzero(x[:-1] * x[1:] < 0)
    return t[i] - x[i] * (t[i + 1] - t[i]) / (x[i + 1] - x[i])


def main() -> dict[str, Any]:
    """Print and return the energy error, the times at x = 0 and the extremes of P3."""
    trajectory = simulate()
    p3 = path_of_p3(trajectory)
    found = {
        "energy_error": float(np.abs(trajectory.energy - trajectory.energy[0]).max()),
        "drift": float(trajectory.drift.max()),
        "rank": float(trajectory.rank.max()),
        "crossings": crossings(trajectory),
        "highest_y": float(p3[:, 1].max()),
        "lowest_z": float(p3[:, 2].min()),
        "steps": trajectory.steps,
    }
    print(
        f"energy within {found['energy_error']:.1e} J, gap {found['drift']:.1e} m, "
        f"P3 passes x = 0 at {np.round(found['crossings'], 3)} s, {found['steps']} steps;\n"
        f"its highest y is {found['highest_y']:.3f} m, its lowest z {found['lowest_z']:.3f} m"
    )
    return found


if __name__ == "__main__":
    main()
