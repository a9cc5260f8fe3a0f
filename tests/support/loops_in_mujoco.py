"""Closed loops of a controller's Function, or its C, with MuJoCo as the plant."""

import numpy as np


def ticks(
    law, plant, count, ref, *, steps=1, delay=0, function=None, measured=None, first=None, **given
):
    """Yield the outputs of each tick, when the plant has moved by it.

    Args:
        law: controller.
        plant: a `Plant`.
        count: ticks.
        ref: reference, or a function of time.
        steps: of the plant in a tick.
        delay: ticks by which commands are late.
        first: command until the first one acts; that itself by default.
        function: in place of the controller's own, such as its C.
        measured: (q, v) → (q, v) as the controller gets them.
        given: further inputs.
    """
    function, z, waiting = function or law.function, law.z0, []
    sizes = {name: function.numel_in(name) for name in function.name_in()}
    for k in range(count):
        q, v = (plant.q, plant.v) if measured is None else measured(plant.q, plant.v)
        now = {"q": q, "v": v, "ref": ref(k * law.period) if callable(ref) else ref, "z": z}
        now = {"mask": np.ones(sizes.get("mask", 0))} | now | given
        out = function(**{name: now[name] for name in sizes})
        out = {name: np.array(value).ravel() for name, value in out.items()}
        z = out["z_next"]
        waiting.append(out["u"])
        late = waiting[0] if first is None else first
        plant.step(waiting[k - delay] if k >= delay else late, steps)
        yield out
