"""Table of legged robots: generated C in MuJoCo, mass +10 %, one tick late.

cd tests && python -m robots.legs [--models FOLDER] [--sensors] [go2 | spot | soft | g1 | …]
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from mbcasadi.validation import Sensing, compile_controller
from robots import cassie, cassie_sensed, humanoid, models, quadrupeds, talos
from robots.ground import Ground
from robots.legs.gaits import trot, walk
from robots.legs.trial import COM, Trial, judged, recorded
from robots.whole_body.sensed import ERRORS, ESTIMATE_HEADS

GROUNDS = {
    "level": Ground(),
    "slope 10°": Ground(slope=np.deg2rad(10.0)),
    "friction 0.3": Ground(friction=0.3),
}
CASSIE_PUSHES = {
    "level": None,
    "60 N forward": (0, 60.0),
    "60 N backward": (0, -60.0),
    "60 N sideways": (1, 60.0),
}


def quadruped_trials(name: str, quadruped: quadrupeds.Quadruped) -> Iterator[Trial]:
    """Yield the trials of Go2 or Spot."""
    for condition, ground in GROUNDS.items():
        stand = quadrupeds.standing(quadruped, ground)
        with compile_controller(stand.law) as law:
            for task in ("stands", "moves", "lifts"):
                followed = getattr(quadrupeds, task)(stand)
                reference, mask = followed if task == "lifts" else (followed, None)
                trial = Trial(
                    name, task, condition, stand.law, stand.model, stand.q0, reference, mask=mask,
                    compiled=law,
                )  # fmt: skip
                yield trial
                for newton in (100.0, -100.0) if condition == "level" and task != "lifts" else ():
                    push = f"{newton:+.0f} N sideways"
                    yield replace(trial, condition=push, push=(1, newton))
                if condition == "level" and task == "lifts":
                    yield from pushed_on_three_feet(trial, stand)


def pushed_on_three_feet(trial: Trial, stand: quadrupeds.Stand) -> Iterator[Trial]:
    """Yield the trials of a robot that holds a foot up and is pushed; it may put the foot down."""
    duration = 7.0
    reference, mask = quadrupeds.lifts(stand, lowered=2 * duration)
    lifted = replace(
        trial, task="on three feet", reference=reference, mask=mask, duration=duration,
        step=quadrupeds.catches(stand),
    )  # fmt: skip
    for axis, word in ((1, "sideways"), (0, "forward")):
        for newton in (100.0, -100.0, 150.0, -150.0):
            yield replace(lifted, condition=f"{newton:+.0f} N {word}", push=(axis, newton))


def soft_trials() -> Iterator[Trial]:
    """Yield the trials of quadrupeds whose feet are soft in MuJoCo."""
    for name, quadruped in quadrupeds.SOFT.items():
        stand = quadrupeds.standing(quadruped, GROUNDS["level"])
        still = quadrupeds.stands(stand)
        yield Trial(
            name, "stands, 30 s", "level", stand.law, stand.model, stand.q0, still, duration=30.0
        )


def talos_trials() -> Iterator[Trial]:
    """Yield the trial of Talos with the friction of all its joints in the law."""
    law, model, q0 = talos.standing()
    rest = law.reference_at(q0)
    yield Trial(
        "Talos", "stands", "friction of all joints", law, model, q0, lambda _: rest, "com.position",
        COM,
    )  # fmt: skip


def humanoid_trials() -> Iterator[Trial]:
    """Yield the trials of G1 on its soles."""
    stand = humanoid.standing()
    with compile_controller(stand.law) as law:
        for task in ("squats", "moves_arms"):
            trial = Trial(
                "G1", task.replace("_", " "), "level", stand.law, stand.model, stand.q0,
                getattr(humanoid, task)(stand), "com.position", COM, compiled=law,
            )  # fmt: skip
            yield trial
            yield replace(trial, condition="60 N forward", push=(0, 60.0))
            yield replace(trial, condition="60 N sideways", push=(1, 60.0))
        reference, mask = humanoid.balances(stand)
        yield replace(trial, task="one foot, 20 s", reference=reference, mask=mask, duration=23.0)


def cassie_trials(sensed: bool) -> Iterator[Trial]:
    """Yield the trials of Cassie; where its state is estimated from rest on its springs on."""
    stand, model, q0 = cassie.standing()
    rest, squats = stand.reference_at(q0), cassie.squats(stand, q0)
    with compile_controller(stand) as law:
        sensing = None
        if sensed:
            q0 = cassie_sensed.at_rest(stand, law, model, q0)
            sensing = Sensing(cassie_sensed.estimator_of(stand, q0), ERRORS)
        for task, reference in (("stands", lambda _: rest), ("squats", squats)):
            for condition, push in CASSIE_PUSHES.items():
                yield Trial(
                    "Cassie", task, condition, stand, model, q0, reference, "pelvis.position",
                    push=push, duration=7.0, compiled=law, sensing=sensing,
                )  # fmt: skip


PARTS: dict[str, Callable[[bool], Iterator[Trial]]] = {
    "go2": lambda _: quadruped_trials("Go2", quadrupeds.GO2),
    "spot": lambda _: quadruped_trials("Spot", quadrupeds.SPOT),
    "soft": lambda _: soft_trials(),
    "g1": lambda _: humanoid_trials(),
    "talos": lambda _: talos_trials(),
    "cassie": cassie_trials,
}
GAITS = {"trot": trot, "walk": walk}
HEADS = ["robot", "task", "condition", "steady, mm", "goal", "after push, mm", "solved"]
HEADS += ["over, mrad", "reached"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="robots.legs", description=__doc__)
    parser.add_argument("rows", nargs="*", choices=["all", *PARTS, *GAITS], default="all")
    parser.add_argument("--sensors", action="store_true", help="an estimator gives q and v")
    models.add_argument(parser)
    options = parser.parse_args()
    heads = HEADS + ESTIMATE_HEADS * options.sensors
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for name, trials in PARTS.items():
        if "all" in options.rows or name in options.rows:
            for trial in trials(options.sensors):
                chosen = trial.sensed() if options.sensors else trial
                print(judged(chosen, recorded(chosen)), flush=True)
    for name, lines in GAITS.items():
        if "all" in options.rows or name in options.rows:
            for line in lines(options.sensors):
                print(line, flush=True)


if __name__ == "__main__":
    main()
