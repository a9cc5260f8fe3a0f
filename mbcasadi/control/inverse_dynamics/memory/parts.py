"""The parts of the state z behind the active sets and the safe output, in their order."""

from typing import TYPE_CHECKING

from mbcasadi.control.inverse_dynamics.contacts.force_feedback import integral_names
from mbcasadi.control.inverse_dynamics.contacts.load_ramp import ramp_names
from mbcasadi.control.inverse_dynamics.limits.predicted_motion import plan_names
from mbcasadi.control.inverse_dynamics.memory.observer import observer_names
from mbcasadi.control.inverse_dynamics.missed_tasks import count_names
from mbcasadi.control.inverse_dynamics.weighed_forces import force_names
from mbcasadi.system.coordinates import rates

if TYPE_CHECKING:
    from mbcasadi.control.inverse_dynamics.options import Setup


def memory_parts(setup: "Setup") -> dict[str, tuple[str, ...]]:
    """Return the names of the entries by what they belong to; `remembering.py` fills them."""
    forces = (*(f"force.{name}" for name in setup.system.actuator_names), "force.known")
    contacts, speeds = setup.contact_names, rates(setup.system).components
    return {
        "misses": count_names(setup),
        "servos": () if setup.servos is None else setup.servos.memory_names,
        "forces": forces if setup.remembers_force else (),
        "plans": plan_names(setup),
        "ramps": () if setup.load_ramp is None else ramp_names(contacts),
        "integrals": () if setup.force_feedback is None else integral_names(force_names(setup)),
        "observer": () if setup.observer is None else observer_names(setup.delay_ticks, speeds),
    }
