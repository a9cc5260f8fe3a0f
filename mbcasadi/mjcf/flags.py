"""The model's `<flag>` element."""

from dataclasses import dataclass

import mujoco


@dataclass(frozen=True)
class Flags:
    """True where the model computes this force.

    With springs and dampers both off MuJoCo computes no passive force at all, gravity
    compensation included: `passive`. A model without actuators has no actuator force at all,
    gravity compensation that joints route to it included: `actuation`.
    """

    gravity: bool
    spring: bool
    damper: bool
    passive: bool
    equality: bool
    actuation: bool
    clamp_ctrl: bool
    implicit_damping: bool
    friction_loss: bool

    @property
    def off(self) -> tuple[str, ...]:
        """Attributes of elements whose force is switched off."""
        groups = (
            (self.gravity, ("gravity",)),
            (self.spring, ("stiffness", "springref", "springquat", "springlength")),
            (self.damper, ("damping",)),
            (self.passive, ("gravcomp",)),
        )
        return tuple(name for enabled, names in groups if not enabled for name in names)


def read_flags(model: mujoco.MjModel) -> Flags:
    """Return the flags of a model."""
    Bit = mujoco.mjtDisableBit

    def enabled(bit: mujoco.mjtDisableBit) -> bool:
        return not model.opt.disableflags & int(bit.value)

    spring, damper = enabled(Bit.mjDSBL_SPRING), enabled(Bit.mjDSBL_DAMPER)
    return Flags(
        gravity=enabled(Bit.mjDSBL_GRAVITY),
        spring=spring,
        damper=damper,
        passive=spring or damper,
        equality=enabled(Bit.mjDSBL_EQUALITY) and enabled(Bit.mjDSBL_CONSTRAINT),
        actuation=model.nu > 0 and enabled(Bit.mjDSBL_ACTUATION),
        clamp_ctrl=enabled(Bit.mjDSBL_CLAMPCTRL),
        implicit_damping=enabled(Bit.mjDSBL_EULERDAMP),
        friction_loss=enabled(Bit.mjDSBL_FRICTIONLOSS) and enabled(Bit.mjDSBL_CONSTRAINT),
    )
