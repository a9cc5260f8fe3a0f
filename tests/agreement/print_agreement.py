"""Print how far all formulations agree: `python tests/agreement/print_agreement.py`.

One line a mechanism: the largest relative difference from the reference in plain NumPy over
1,000 admissible states (a, f_c) and 1,000 drifted ones (a), and from MuJoCo's own M, J, bias.
"""

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.admissible_states import States, admissible_states, drifted_states
from support.constrained_mechanisms import MECHANISMS, Mechanism, mechanism
from support.formulation_variants import motion, variants
from support.motion_references import (
    Motion,
    acceleration_scale,
    force_scale,
    mujoco_motion,
    reference_motion,
    worst,
)


def largest(
    it: Mechanism, states: States, key: str, expected: Motion, scale: Callable[[Motion], object]
) -> float:
    """Return the largest relative difference over all formulations and states."""
    value, size = getattr(expected, key), scale(expected)
    return max(worst(motion(it, label, states)[key] - value, size) for label in variants(it))


def main() -> None:
    """Print the table."""
    print("| mechanism | nv | rows | rank | what is hard | a | f_c | a, drifted | a, MuJoCo |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in MECHANISMS:
        it = mechanism(name)
        states, drifted = admissible_states(it), drifted_states(it)
        expected, off = reference_motion(it, states), reference_motion(it, drifted)
        errors = [
            largest(it, states, "a", expected, acceleration_scale),
            largest(it, states, "f_c", expected, force_scale),
            largest(it, drifted, "a", off, acceleration_scale),
        ]
        if it.model is not None:
            peer = mujoco_motion(it, states)
            errors.append(largest(it, states, "a", peer, acceleration_scale))
        cells = [f"{error:.0e}" for error in errors] + [""] * (4 - len(errors))
        sizes = [str(n) for n in (it.system.nv, it.system.nc, it.rank)]
        print(f"| {' | '.join([name, *sizes, ', '.join(it.kinds), *cells])} |", flush=True)


if __name__ == "__main__":
    main()
