"""The probability that each contact stands, from its force, the momentum residual and the schedule.

Of a normal force F with Gaussian noise σ around the load μ where the contact stands, around 0
where it does not, the logarithm of the odds is

    ln p(F | stands) / p(F | in the air) = μ (F - μ/2) / σ².

Independent sources add up, with the prior of the schedule:

    ln P/(1 - P) = ln P_0/(1 - P_0) + Σ_sources μ (F - μ/2) / σ²,

each source bounded, so that none outweighs all others. One that is no number adds nothing. The mask
follows from P by the same rule as that of inverse dynamics from the force: `contacts/touch_down`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.contacts.touch_down import touch_rule
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError
from mbcasadi.estimation.residual_forces import residual_forces
from mbcasadi.qp.input_guard import LARGEST_INPUT, MASK_ON
from mbcasadi.shapes import require_identifier, require_positive
from mbcasadi.system import System

MOST_LOG_ODDS = 10.0
"""Bound of a source: odds of 22,000 to 1, which two others can still outweigh."""


@dataclass(frozen=True)
class FootLoad:
    """What a source says of the normal force of a contact.

    Attributes:
        load: N, its mean where the contact stands.
        noise: N, standard deviation around it, and around zero in the air.

    Raises:
        ProblemError: a number that is not positive.
    """

    load: float
    noise: float

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(load=self.load, noise=self.noise)


@dataclass(frozen=True)
class ContactBelief:
    """What is believed of contacts before they are measured, and what is decided.

    With all sources lost the mask is the schedule, since `swing < off <= on <= stance`.

    Attributes:
        stance: probability that a contact stands which is scheduled to stand.
        swing: the same of one that is scheduled to swing.
        on: probability from which on a contact touches.
        off: below which it does not touch any more.

    Raises:
        ProblemError: numbers that are not `0 < swing < off <= on <= stance < 1`.
    """

    stance: float = 0.8
    swing: float = 0.2
    on: float = 0.6
    off: float = 0.4

    def __post_init__(self) -> None:
        require_fields(self)
        if not 0 < self.swing < self.off <= self.on <= self.stance < 1:
            raise ProblemError(
                f"swing = {self.swing}, off = {self.off}, on = {self.on}, stance = {self.stance}; "
                "expected 0 < swing < off <= on <= stance < 1"
            )


@checked
def contact_probability(
    system: System,
    contacts: Sequence[Contact],
    *,
    force: FootLoad | None = None,
    residual: FootLoad | None = None,
    belief: ContactBelief | None = None,
    name: str = "contact_probability",
) -> ca.Function:
    """Return (schedule, [normal_force], [q, residual], z) → (probability, mask, z_next).

    - `schedule`: for each contact, above one half where it is scheduled to stand.
    - `normal_force`: N, of each contact, by its sensor.
    - `q`, `residual`: (nv,) of `momentum_observer`; its normal forces are those of
      `residual_forces`.
    - `z`: (2 nc,) as that of `contacts.touch_down`; zeros at the start.
    - `probability`: that each contact stands, for `base_estimator`.
    - `mask`: one for each contact that is used: by the rule of `touch_down`, with the probability
      in the place of the force. Where the schedule is no number it is used while it touches.

    NaN and infinity count as no information.

    Args:
        system: the mechanism.
        contacts: of its feet.
        force: of force sensors, where there are such.
        residual: of the momentum residual, where it is used.
        belief: prior of the schedule and hysteresis; `ContactBelief()` by default.
        name: a C identifier.

    Raises:
        ProblemError: no contacts, or those of `residual_forces`.
        UnknownNameError: no such frame.
    """
    require_identifier("name", name)
    if not contacts:
        raise ProblemError(f"'{system.name}' without contacts; expected those of its feet")
    belief, count = belief or ContactBelief(), len(contacts)
    inputs = {"schedule": ca.SX.sym("schedule", count)}
    schedule = inputs["schedule"]
    prior = ca.if_else(schedule > MASK_ON, _log_odds(belief.stance), _log_odds(belief.swing))
    log_odds = ca.if_else(_is_number(schedule), prior, 0)
    if force is not None:
        inputs["normal_force"] = ca.SX.sym("normal_force", count)
        log_odds += _evidence(force, inputs["normal_force"])
    if residual is not None:
        inputs["q"] = ca.SX.sym("q", system.nq)
        inputs["residual"] = ca.SX.sym("residual", system.nv)
        f = residual_forces(system, contacts)(inputs["q"], inputs["residual"])
        log_odds += _evidence(residual, f[0::3])
    inputs["z"] = ca.SX.sym("z", 2 * count)
    probability = 1 / (1 + ca.exp(-log_odds))
    stands = ca.logic_not(schedule <= MASK_ON)  # true for NaN
    touch = touch_rule(stands, probability, inputs["z"], belief.on, belief.off)
    outputs = {"probability": probability, "mask": touch.mask, "z_next": touch.memory}
    return ca.Function(
        name,
        [*inputs.values()],
        [ca.densify(x) for x in outputs.values()],
        [*inputs],
        [*outputs],
        {"cse": True},
    )


def _log_odds(probability: float) -> float:
    return float(np.log(probability / (1 - probability)))


def _is_number(x: ca.SX) -> ca.SX:
    return ca.fabs(x) <= LARGEST_INPUT  # false for NaN


def _evidence(source: FootLoad, force: ca.SX) -> ca.SX:
    """Return the log-odds of a source, zero where it is no number."""
    odds = source.load * (force - source.load / 2) / source.noise**2
    bounded = ca.fmin(ca.fmax(odds, -MOST_LOG_ODDS), MOST_LOG_ODDS)
    return ca.if_else(_is_number(force), bounded, 0)
