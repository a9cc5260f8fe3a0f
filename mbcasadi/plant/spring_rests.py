"""Where springs that yield are at rest: MuJoCo's plastic state, by the names of parameters."""

import mujoco

from mbcasadi.plant.model_attributes import BALL, ENDS, NO_STATE, WXYZ


def spring_rests(model: mujoco.MjModel, data: mujoco.MjData) -> dict[str, float]:
    """Return the rest of each spring that yields, entry by entry; none before MuJoCo 4.0.

    "joint:NAME:springref" of slides and hinges, "joint:NAME:springquat.w" to ".z" of balls,
    "tendon:NAME:springlength.lower" and ".upper".
    """
    rests: dict[str, float] = {}
    for kind, prefix, count in (("joint", "jnt", model.njnt), ("tendon", "tendon", model.ntendon)):
        places = getattr(model, f"{prefix}_plasticadr", [NO_STATE] * count)
        for i, place in enumerate(places):
            if int(place) == NO_STATE:
                continue
            name = f"{kind}:{getattr(model, kind)(i).name or f'{kind}{i}'}"
            if kind == "tendon":
                entries = [f"springlength.{end}" for end in ENDS]
            elif int(model.jnt_type[i]) in BALL:
                entries = [f"springquat.{axis}" for axis in WXYZ]
            else:
                entries = ["springref"]
            for k, entry in enumerate(entries):
                rests[f"{name}:{entry}"] = float(data.plastic[int(place) + k])
    return rests
