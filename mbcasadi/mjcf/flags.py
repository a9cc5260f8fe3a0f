"""What the model's `<flag>` element switches off."""

from dataclasses import dataclass

import mujoco


@dataclass(frozen=True)
class Flags:
    """True where the model computes this force.

    With springs and dampers both off MuJoCo computes no passive force at all, gravity
    compensation included: `passive`.
    """

    gravity: bool
    spring: bool
    damper: bool
    passive: bool
    equality: bool
    actuation: bool
    clamp_ctrl: bool


def read_flags(model: mujoco.MjModel) -> Flags:
    """Return the flags of a model."""
    Bit = mujoco.mjtDisableBit

    def on(bit: mujoco.mjtDisableBit) -> bool:
        return not model.opt.disableflags & int(bit.value)

    spring, damper = on(Bit.mjDSBL_SPRING), on(Bit.mjDSBL_DAMPER)
    return Flags(
        gravity=on(Bit.mjDSBL_GRAVITY),
        spring=spring,
        damper=damper,
        passive=spring or damper,
        equality=on(Bit.mjDSBL_EQUALITY) and on(Bit.mjDSBL_CONSTRAINT),
        actuation=on(Bit.mjDSBL_ACTUATION),
        clamp_ctrl=on(Bit.mjDSBL_CLAMPCTRL),
    )
